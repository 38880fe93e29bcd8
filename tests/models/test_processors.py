"""Processors make of images and sounds what those of Transformers make of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ember_ml import models, ops
from ember_ml.errors import ConfigError
from tests.reference import pretrained_sounds, processing
from tests.reference.pretrained import check_close

SIZE = {"height": 12, "width": 12}
IMAGES: dict[str, dict[str, Any]] = {
    "ViTImageProcessor": {"size": {"height": 14, "width": 10}},
    "CLIPImageProcessor": {"size": {"shortest_edge": 14}, "crop_size": SIZE},
    "SiglipImageProcessor": {"size": {"height": 40, "width": 32}},
    "BitImageProcessor": {"size": {"shortest_edge": 16}, "crop_size": SIZE, "do_convert_rgb": False},
    "ConvNextImageProcessor": {"size": {"shortest_edge": 12}, "crop_pct": 0.75},
}


@pytest.mark.parametrize("resample", [0, 1, 2, 3])
@pytest.mark.parametrize("name", IMAGES)
def test_images_become_what_transformers_makes_of_them(name: str, resample: int, backend: str, tmp_path: Path) -> None:
    processing.write(tmp_path, name, **IMAGES[name], resample=resample)
    step = 1.01 / 255 / 0.25  # a number of 0 to 255, divided by the least deviation
    for shapes, share, steps in (([(20, 24, 3), (17, 33, 3)], 0.02, 1), ([(33, 17, 3)], 0.35, 2)):
        images = processing.draw_images(shapes)
        found = ops.to_numpy(models.processor(tmp_path)(images))
        wanted = processing.process(tmp_path, name, images)
        assert found.shape == wanted.shape
        assert processing.share_apart(found, wanted, 1e-4) < share  # Pillow's weights have 22 bits
        assert processing.share_apart(found, wanted, steps * step) == 0


def test_large_images_of_convnext_are_not_cropped(backend: str, tmp_path: Path) -> None:
    processing.write(tmp_path, "ConvNextImageProcessor", size={"shortest_edge": 384}, resample=2)
    images = processing.draw_images([(30, 40, 3)])
    wanted = processing.process(tmp_path, "ConvNextImageProcessor", images)
    assert processing.share_apart(ops.to_numpy(models.processor(tmp_path)(images[0])), wanted, 1e-4) < 0.01


def test_steps_that_are_switched_off_and_older_sizes(backend: str, tmp_path: Path) -> None:
    off = {"do_resize": False, "do_rescale": False, "do_normalize": False}
    (tmp_path / "preprocessor_config.json").write_text(
        json.dumps({"feature_extractor_type": "ViTFeatureExtractor", **off})
    )
    assert ops.to_numpy(models.processor(tmp_path)([[[[0], [9]], [[255], [7]]]])).tolist() == [
        [[[0], [9]], [[255], [7]]]
    ]
    config = {"image_processor_type": "CLIPImageProcessorFast", "size": 6, "crop_size": 4, **off, "do_resize": True}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    process = models.processor(tmp_path)
    assert ops.shape(process(processing.draw_images([(8, 12, 3)]))) == (1, 4, 4, 3)
    with pytest.raises(ValueError, match="whole numbers from 0 to 255"):
        process(ops.ones((8, 8, 3)))
    with pytest.raises(ValueError, match="whole numbers from 0 to 255"):
        process(ops.ones((1, 8, 8, 3), dtype="int64"))


@pytest.mark.parametrize("settings", [{}, {"feature_size": 128, "chunk_length": 2}, {"n_fft": 512, "hop_length": 128}])
def test_sounds_become_what_transformers_makes_of_them(settings: Any, backend: str, tmp_path: Path) -> None:
    settings = {"chunk_length": 1, **settings}
    pretrained_sounds.write_extractor(tmp_path, **settings)
    sounds = processing.draw_sounds([16_000, 9_000, 40_000])
    wanted = pretrained_sounds.features_of(tmp_path, sounds, 16_000)
    process = models.processor(tmp_path)
    check_close(ops.to_numpy(process(sounds, rate=16_000)), wanted)
    check_close(ops.to_numpy(process(sounds[1])), wanted[1:2])
    with pytest.raises(ValueError, match="not 44100"):
        process(sounds, rate=44_100)
    with pytest.raises(ValueError, match="a vector of samples"):
        process([[sounds[0]]])


def test_settings_in_a_table_of_the_other_file(backend: str, tmp_path: Path) -> None:
    processing.write(tmp_path, "ViTImageProcessor", size=SIZE)
    images = processing.draw_images([(9, 9, 3)])
    wanted = ops.to_numpy(models.processor(tmp_path)(images)).tolist()
    config = json.loads((tmp_path / "preprocessor_config.json").read_text())
    (tmp_path / "preprocessor_config.json").unlink()
    (tmp_path / "processor_config.json").write_text(json.dumps({"image_processor": config, "processor_class": "x"}))
    assert ops.to_numpy(models.processor(tmp_path)(images)).tolist() == wanted
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    with pytest.raises(FileNotFoundError, match="has no preprocessor_config"):
        models.processor(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_processor_type": "SamImageProcessor"}, "describes a 'SamImageProcessor'"),
        ({"image_processor_type": 7}, "describes a 7"),
        ({"resample": 5}, "resample = 5"),
        ({"size": {"longest_edge": 4}}, r"\(size\) lacks height"),
        ({"size": "large"}, "size = 'large'"),
        ({"image_mean": 0.5}, "image_mean = 0.5"),
        ({"do_resize": 1}, "true or false"),
    ],
)
def test_wrong_settings_raise(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    config = {"image_processor_type": "ViTImageProcessor", "size": SIZE, "image_mean": [0.5], "image_std": [0.5]}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(ConfigError, match=message):
        models.processor(tmp_path)
