"""Random changes of samples: the same on every backend from one seed, and what each of them does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.config import registry
from ember_ml.nn.layers import augmentation
from ember_ml.nn.tensor import EmberTensor
from tests.reference.images import distance
from tests.reference.matrices import numpy, random

SHAPE = (4, 6, 5, 3)
LAYERS: dict[str, Callable[..., Any]] = {
    "RandomCrop": lambda **f: nn.RandomCrop((3, 4), padding=1, fill_value=0.5, **f),
    "RandomFlip": lambda **f: nn.RandomFlip("both", **f),
    "RandomRotation": lambda **f: nn.RandomRotation(40.0, fill_mode="reflect", **f),
    "RandomResizedCrop": lambda **f: nn.RandomResizedCrop((3, 4), **f),
    "ColorJitter": lambda **f: nn.ColorJitter(0.4, 0.4, 0.4, 0.2, **f),
    "RandomErasing": lambda **f: nn.RandomErasing(0.7, **f),
}
MIXERS: dict[str, Callable[[], Any]] = {"MixUp": lambda: nn.MixUp(2.0), "CutMix": nn.CutMix}


def _images() -> Any:
    return abs(random(SHAPE, "float32")) % 1.0


def _run(make: Callable[[], Any], x: Any, *more: Any) -> list[Any]:
    ops.seed(12)
    results = make()(ops.asarray(x), *more)
    return [ops.to_numpy(result) for result in (results if isinstance(results, tuple) else (results,))]


def test_every_layer_is_public_and_tested_here() -> None:
    assert set(augmentation.__all__) == {*LAYERS, *MIXERS, "SpecAugment"}
    for name in augmentation.__all__:
        assert getattr(nn, name) is getattr(augmentation, name)


@pytest.mark.parametrize("name", [*LAYERS, *MIXERS, "SpecAugment"])
def test_one_seed_gives_one_picture_on_every_backend(backend: str, name: str) -> None:
    x, more = _images(), ()
    make: Callable[[], Any] = LAYERS[name] if name in LAYERS else MIXERS.get(name, lambda: nn.SpecAugment(2, 3))
    if name == "SpecAugment":
        x = x[..., 0]
    if name in MIXERS:
        more = ([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.2, 0.8]],)
    found = _run(make, x, *more)
    with ember_ml.use_backend("numpy"):
        wanted = _run(make, x, *more)
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == want.dtype
        assert distance(got, want) < 1e-5
    assert found[0].shape != x.shape or distance(found[0], x) > 0.01


@pytest.mark.parametrize("name", LAYERS)
def test_both_formats_see_the_same_change(backend: str, name: str) -> None:
    x = _images()
    want = _run(LAYERS[name], x)[0]
    first = _run(lambda: LAYERS[name](data_format="channels_first"), x.transpose(0, 3, 1, 2))[0]
    assert distance(first.transpose(0, 2, 3, 1), want) < 1e-5
    alone = _run(LAYERS[name], x[0])[0]
    assert alone.shape == want.shape[1:]
    assert type(LAYERS[name]()(EmberTensor(x))) is EmberTensor
    with pytest.raises(ValueError, match=r"a batch of them|images are"):
        LAYERS[name]()(x[0, 0])


@pytest.mark.parametrize("name", ["RandomFlip", "RandomRotation", "ColorJitter", "RandomErasing"])
def test_nothing_changes_outside_of_training(backend: str, name: str) -> None:
    x = _images()
    assert ops.to_numpy(LAYERS[name]().eval()(x)).tolist() == x.tolist()


def test_crops_have_their_size_outside_of_training_too(backend: str) -> None:
    x = _images()
    cut = nn.RandomCrop((2, 3)).eval()(x)
    assert ops.to_numpy(cut).tolist() == x[:, 2:4, 1:4].tolist()
    small = nn.RandomResizedCrop(5).eval()(x)
    assert distance(ops.to_numpy(small), x[:, :5]) < 1e-6
    assert [ops.to_numpy(y).tolist() for y in nn.MixUp().eval()([1.0], [2.0])] == [[1.0], [2.0]]
    assert [ops.to_numpy(y).tolist() for y in nn.CutMix().eval()([1.0], [2.0])] == [[1.0], [2.0]]
    assert ops.to_numpy(nn.SpecAugment().eval()([[1.0]])).tolist() == [[1.0]]


def test_crops_are_parts_of_their_images(backend: str) -> None:
    x = _images()
    places = set()
    ops.seed(0)
    for _ in range(4):
        for image, part in zip(x, ops.to_numpy(nn.RandomCrop((4, 3))(ops.asarray(x))), strict=True):
            fits = [(i, j) for i in range(3) for j in range(3) if (image[i : i + 4, j : j + 3] == part).all()]
            assert len(fits) == 1
            places.add(fits[0])
    assert len(places) > 4
    with pytest.raises(ValueError, match="larger than images"):
        nn.RandomCrop(7)(x)


def test_flips_happen_half_of_the_time(backend: str) -> None:
    x = ops.broadcast_to(ops.reshape(ops.array([0.0, 1.0]), (1, 1, 2, 1)), (400, 1, 2, 1))
    ops.seed(3)
    flipped = ops.to_numpy(nn.RandomFlip()(x))[:, 0, 0, 0].sum()
    assert 150 < flipped < 250
    assert ops.to_numpy(nn.RandomFlip("vertical", 1.0)(x)).tolist() == ops.to_numpy(x).tolist()


def test_areas_are_as_large_as_asked(backend: str) -> None:
    ops.seed(5)
    x = ops.ones((50, 8, 8, 1))
    kept = ops.sum(nn.RandomErasing(1.0, (0.25, 0.5), (1.0, 1.0))(x), axis=(1, 2, 3))
    erased = {64 - count for count in ops.to_numpy(kept).tolist()}
    assert min(erased) >= 16
    assert max(erased) <= 36  # 0.5 of 64 is a square of 5.7, rounded 6
    assert len(erased) > 1
    assert ops.to_numpy(nn.RandomErasing(0.0)(x)).all()


def test_bands_and_spans_are_at_most_as_wide_as_asked(backend: str) -> None:
    ops.seed(6)
    hidden = ops.to_numpy(nn.SpecAugment(3, 5, 1, 1, fill_value=-1.0)(ops.ones((60, 20, 10)))) < 0
    bands, spans = hidden.all(axis=1).sum(axis=1), hidden.all(axis=2).sum(axis=1)
    assert set(bands.tolist()) == {0, 1, 2, 3}
    assert set(spans.tolist()) == {0, 1, 2, 3, 4, 5}
    assert (hidden.sum(axis=(1, 2)) == 20 * bands + spans * (10 - bands)).all()


def test_mixtures_are_of_two_samples(backend: str) -> None:
    x, y = ops.asarray([[0.0], [1.0], [2.0], [3.0]]), ops.eye(4)
    ops.seed(1)
    mixed, target = (ops.to_numpy(part) for part in nn.MixUp(1.0)(x, y))
    assert distance(target.sum(axis=1), [1.0] * 4) < 1e-6
    assert distance(target @ numpy.arange(4.0), mixed[:, 0]) < 1e-5  # the same share of both
    images = ops.broadcast_to(ops.reshape(ops.arange(4.0), (4, 1, 1, 1)), (4, 6, 6, 1))
    cut, target = (ops.to_numpy(part) for part in nn.CutMix()(images, y))
    assert distance(target @ numpy.arange(4.0), cut.mean(axis=(1, 2, 3))) < 1e-5


def test_whole_numbers_are_mixed_like_floats(backend: str) -> None:
    images, classes = [[[[0]]], [[[200]]], [[[100]]]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    for make in (lambda: nn.MixUp(1.0), lambda: nn.MixUp(0.4), nn.CutMix):
        for dtype in ("uint8", "int32"):
            whole = _run(make, ops.cast(images, dtype), ops.cast(classes, dtype))
            mixed = _run(make, ops.cast(images, "float32"), ops.cast(classes, "float32"))
            for found, want in zip(whole, mixed, strict=True):
                assert distance(found, want) < 1e-6
            assert whole[1].dtype == "float32"
    assert 0 < whole[1].max() <= 1


@pytest.mark.parametrize("name", MIXERS)
def test_targets_of_other_samples(backend: str, name: str) -> None:
    for layer in (MIXERS[name](), MIXERS[name]().eval()):
        with pytest.raises(ValueError, match="one target each"):
            layer(_images(), ops.eye(5))


def test_compiled_colours_are_those_of_eager_code(backend: str) -> None:
    x = abs(random((4, 32, 32, 3), "float32")) % 1.0
    layer = nn.ColorJitter(0.3, 0.3, 0.3, 0.1)
    compiled = ember_ml.compile(layer)
    for seed in range(3):
        ops.seed(seed)
        found = ops.to_numpy(compiled(ops.asarray(x)))
        ops.seed(seed)
        assert distance(found, ops.to_numpy(layer(ops.asarray(x)))) < 1e-4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *((lambda make=make: make(data_format="NHWC"), "not 'NHWC'") for make in (*LAYERS.values(), nn.CutMix)),
        (lambda: nn.RandomRotation(9.0, fill_mode="edge"), "fill_mode must be one of"),
        (lambda: nn.RandomRotation(9.0, interpolation="bicubic"), "interpolation of RandomRotation"),
        (lambda: nn.RandomResizedCrop(3, interpolation="nearest"), "interpolation of RandomResizedCrop"),
    ],
)
def test_settings_that_mean_nothing(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_what_stands_in_erased_areas_of_whole_numbers(backend: str) -> None:
    for value, want in ((300.0, 255), (0.6, 1), (-1.0, 0)):
        x = ops.cast(ops.full((1, 4, 4, 1), 7), "uint8")
        found = nn.RandomErasing(1.0, (1.0, 1.0), (1.0, 1.0), fill_value=value)(x)
        assert ops.to_numpy(found).tolist() == ops.to_numpy(ops.full_like(x, want)).tolist()


def test_whole_numbers_of_colours(backend: str) -> None:
    x = ops.cast(ops.asarray(_images() * 255), "uint8")
    ops.seed(2)
    found = nn.ColorJitter(0.5, 0.5, 0.5, 0.3)(x)
    assert ops.dtype(found) == ops.uint8
    ops.seed(2)
    exact = nn.ColorJitter(0.5, 0.5, 0.5, 0.3, max_value=255.0)(ops.cast(x, "float32"))
    assert distance(ops.to_numpy(found).astype("float32"), ops.to_numpy(exact)) <= 0.5
    ops.seed(2)
    twice = nn.ColorJitter(brightness=0.5)(ops.full((6, 1, 1, 3), 0.2))
    factors = {value / 0.2 for value in ops.to_numpy(twice)[:, 0, 0, 0].tolist()}
    assert min(factors) >= 0.5
    assert max(factors) <= 1.5
    assert len(factors) == 6


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nn.RandomCrop(0), "size is a pair"),
        (lambda: nn.RandomCrop(2, padding=-1), "padding"),
        (lambda: nn.RandomFlip("diagonal"), "mode of RandomFlip"),
        (lambda: nn.RandomFlip(probability=2.0), "from 0 to 1"),
        (lambda: nn.RandomRotation(-1.0), "degrees are not negative"),
        (lambda: nn.RandomResizedCrop(2, scale=(0.5, 1.5)), "an area above 0"),
        (lambda: nn.RandomResizedCrop(2, ratio=(2.0, 1.0)), "ratio is a pair"),
        (lambda: nn.ColorJitter(hue=0.6), "hue is from 0 to 0.5"),
        (lambda: nn.RandomErasing(ratio=(0.0, 1.0)), "ratios above 0"),
        (lambda: nn.SpecAugment(-1), "not negative"),
        (lambda: nn.MixUp(0.0), "alpha is positive"),
        (lambda: nn.CutMix(-1.0), "alpha is positive"),
    ],
)
def test_wrong_arguments_are_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.long_with("torch", "mlx")
def test_compiled_layers_draw_the_same_numbers(backend: str) -> None:
    model = nn.Sequential(nn.RandomCrop(4), nn.RandomFlip(), nn.RandomErasing(1.0), nn.RandomRotation(9.0))
    x = ops.asarray(_images())
    ops.seed(4)
    wanted = ops.to_numpy(model(x))
    ops.seed(4)
    assert distance(ops.to_numpy(ember_ml.compile(model)(x)), wanted) < 1e-5


def test_layers_have_configurations(backend: str) -> None:
    made = registry.build(registry.config_of(nn.RandomResizedCrop(7, scale=(0.3, 0.9))))
    assert (made.size, made.scale) == ((7, 7), (0.3, 0.9))
