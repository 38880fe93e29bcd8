"""Models in timm's folders: opened, computed as by timm, and written back under the same names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ember_ml import models, ops
from ember_ml.errors import ConfigError
from tests.reference import pretrained, timm_models
from tests.reference.pretrained import check_close


@pytest.mark.parametrize("name", timm_models.CASES)
def test_results_are_those_of_timm_and_weights_go_back(name: str, backend: str, tmp_path: Path) -> None:
    wanted = timm_models.write(name, tmp_path / "theirs")
    model: Any = models.load(tmp_path / "theirs")
    images = timm_models.draw_images(timm_models.CASES[name]["model_args"].get("in_chans", 3))
    # without a head timm gives one vector for each image
    found = model(images) if timm_models.CASES[name]["num_classes"] else model.embed(images)
    check_close(ops.to_numpy(found), wanted)
    model.save(tmp_path / "ours")
    assert pretrained.read_weights(tmp_path / "ours") == pretrained.read_weights(tmp_path / "theirs")
    config = [json.loads((tmp_path / folder / "config.json").read_text()) for folder in ("ours", "theirs")]
    assert config[0] == config[1]


def test_arguments_that_newer_versions_repeat_are_read(backend: str, tmp_path: Path) -> None:
    """timm 1.0.31 writes the number of classes and the pooling twice."""
    timm_models.write("resnet18", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    repeated = {**config["model_args"], "num_classes": 5, "global_pool": "avg"}
    (tmp_path / "config.json").write_text(json.dumps({**config, "global_pool": "avg", "model_args": repeated}))
    model: Any = models.load(tmp_path)
    assert ops.shape(model(timm_models.draw_images(3))) == (2, 5)
    model.save(tmp_path / "ours")
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["model_args"] == repeated


@pytest.mark.long
@pytest.mark.parametrize("name", timm_models.FULL)
def test_whole_models_that_timm_writes_are_opened_and_go_back(name: str, backend: str, tmp_path: Path) -> None:
    pytest.importorskip("timm")
    timm_models.write_whole(name, tmp_path / "theirs")
    images = timm_models.draw_images(3)
    model = models.load(tmp_path / "theirs")
    check_close(ops.to_numpy(model(images)), timm_models.compute(tmp_path / "theirs", images))
    for parameter in model.parameters():
        parameter.value = ops.multiply(parameter.value, 1.125)
    model.save(tmp_path / "ours")
    check_close(ops.to_numpy(model(images)), timm_models.compute(tmp_path / "ours", images))


def test_a_new_model_has_the_sizes_of_its_name(backend: str) -> None:
    model = models.from_config({"architecture": "resnet18", "num_classes": 10})
    assert model.num_parameters == 11_181_642  # of ResNet-18 with ten classes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"architecture": "resnet18d"}, "architecture = 'resnet18d'"),
        ({"architecture": 3}, "architecture = 3"),
        ({"global_pool": "max"}, "global_pool = 'max'"),
        ({"num_classes": -1}, "num_classes = -1"),
        ({"model_args": {"output_stride": 16}}, "'output_stride'"),
        ({"model_args": {"layers": [1, 1]}}, "list of 4 whole numbers"),
        ({"model_args": {"layers": [1, 1, 1, 10**9]}}, "up to 1000"),
        ({"num_classes": 4}, "has the shape"),
        ({"model_args": {"global_pool": "max"}}, "global_pool = 'max'"),
        ({"model_args": {"num_classes": 6}}, "num_classes = 5, and 6 in its model_args"),
        ({"model_args": {"layers": [2, 1, 1, 1], "channels": [4, 4, 6, 6]}}, "lack 'layer1.1.conv1.weight'"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], words: str, backend: str, tmp_path: Path) -> None:
    timm_models.write("resnet18", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(ConfigError, match=words):
        models.load(tmp_path)
