"""Gradient cases of images: by their numbers, and by what says where they are looked up."""

from __future__ import annotations

from tests.autodiff.case import Numbers, case, numbers

image = numbers(3, 4, 2)
volume = numbers(2, 3)
for interpolation, antialias in (("nearest", False), ("bilinear", False), ("bicubic", True), ("lanczos3", True)):
    case(
        "resize",
        "images",
        images=image,
        size=(2, 5),
        interpolation=interpolation,
        antialias=antialias,
        label=interpolation,
    )
case(
    "scale_and_translate",
    ("images", "scale", "translation"),
    images=image,
    output_shape=(3, 3, 2),
    scale=Numbers((0.83, 1.37), (2,)),
    translation=Numbers((0.3, -0.4), (2,)),
    spatial_dims=(0, 1),
    method="cubic",
)
places = Numbers((0.2, 0.7, -0.4, 0.6, 1.3, 2.6), (2, 3))  # between the elements, where the gradient has no kink
for mode in ("constant", "reflect"):
    case(
        "map_coordinates",
        ("inputs", "coordinates"),
        inputs=volume,
        coordinates=places,
        order=1,
        fill_mode=mode,
        label=mode,
    )
case("map_coordinates", "inputs", inputs=volume, coordinates=places, order=0, label="nearest")
case(
    "affine_transform",
    ("images", "transform"),
    images=image,
    transform=Numbers((0.9, 0.13, 0.21, -0.17, 1.1, 0.33, 0.011, 0.013), (8,)),
)
corners = Numbers((0.1, 0.2, 3.1, 0.3, -0.2, 2.1, 2.9, 1.9), (4, 2))
moved = Numbers((0.23, 0.31, 2.77, 0.13, 0.11, 1.83, 3.17, 2.29), (4, 2))
case(
    "perspective_transform",
    ("images", "start_points", "end_points"),
    images=image,
    start_points=corners,
    end_points=moved,
)
case("rotate", ("images", "angle"), images=image, angle=Numbers((21.0,), ()), fill_mode="reflect")
case("crop_images", "images", images=image, top_cropping=1, left_cropping=1, bottom_cropping=0, right_cropping=2)
case("center_crop", "images", images=image, size=2)
case("pad_images", "images", images=image, top_padding=1, left_padding=0, bottom_padding=0, right_padding=2)
case("extract_patches", "images", images=image, size=2, strides=1, padding="same")
case("gaussian_blur", "images", images=image, kernel_size=(3, 2), sigma=(0.8, 1.2))
case("psnr", ("x", "y"), x=image, y=numbers(3, 4, 2, seed=1), max_val=4.0)
case("ssim", ("x", "y"), x=image, y=numbers(3, 4, 2, seed=1), max_val=2.0, filter_size=3)

colours = numbers(2, 2, 3, low=0.11, high=0.87, apart=True)
for name in ("rgb_to_grayscale", "rgb_to_yuv", "yuv_to_rgb", "rgb_to_hsv", "hsv_to_rgb"):
    # not at multiples of a sixth, where hues have kinks
    case(name, "images", images=colours)
case("resample_poly", x=numbers(2, 7), up=3, down=2)
