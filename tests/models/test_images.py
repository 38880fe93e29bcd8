"""Models of images, and of images and texts, compute what Transformers does, and go back to its format."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import models, nn, ops
from ember_ml.errors import ConfigError
from tests.reference import pretrained, pretrained_images
from tests.reference.pretrained import check_close
from tests.reference.pretrained_images import CASES, IMAGES, TEXTS, WrittenImages

Writing = Callable[[str], WrittenImages]


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Writing:
    """Write the model of a case, at its first use."""
    root = tmp_path_factory.mktemp("images")
    return cache(lambda name: pretrained_images.write(name, root / name))


def _arguments(name: str, case: WrittenImages) -> tuple[Any, ...]:
    if name in IMAGES:
        return (case.images,)
    return (case.tokens, case.mask) if name in TEXTS else (case.tokens, case.images, case.mask)


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_transformers_and_weights_go_back(
    name: str, backend: str, drawn: Writing, tmp_path: Path
) -> None:
    case = drawn(name)
    model = models.load(case.folder)
    arguments = _arguments(name, case)
    check_close(ops.to_numpy(model(*arguments)), case.result)
    if case.pooled is not None:
        check_close(ops.to_numpy(model.embed(*arguments)), case.pooled)
    model.save(tmp_path)
    assert pretrained.read_weights(tmp_path) == pretrained.read_weights(case.folder)


@pytest.mark.parametrize("name", ["vit-classifier", "dinov2", "clip-images", "siglip-images"])
def test_images_of_another_size_get_positions_in_between(name: str, backend: str, drawn: Writing) -> None:
    case = drawn(name)
    images = ops.to_numpy(ops.concatenate([case.images, ops.flip(case.images, 1)], 1))[:, :12]
    settings = {} if "dino" in name else {"interpolate_pos_encoding": True}
    wanted, _ = pretrained_images.compute(name, case.folder, images, case.tokens, case.mask, **settings)
    model = models.load(case.folder)
    check_close(ops.to_numpy(model(images)), wanted)
    with pytest.raises(ValueError, match="does not fit"):
        model(images[:, :3])


@pytest.mark.parametrize("name", ["vit", "dinov2-classifier", "clip", "siglip", "resnet", "convnext-v2"])
def test_transformers_opens_what_was_trained_here(name: str, backend: str, drawn: Writing, tmp_path: Path) -> None:
    case = drawn(name)
    model = models.load(case.folder)
    for parameter in model.parameters():
        parameter.value = ops.multiply(parameter.value, 1.25)
    model.save(tmp_path)
    wanted, _ = pretrained_images.compute(name, tmp_path, case.images, case.tokens, case.mask)
    check_close(ops.to_numpy(model(*_arguments(name, case))), wanted)


def test_hidden_patches_are_those_of_transformers(backend: str, drawn: Writing) -> None:
    case = drawn("dinov2")
    hidden = [[1, 0, 0, 1], [0, 0, 0, 0]]
    wanted = pretrained_images.hide_patches("dinov2", case.folder, case.images, hidden)
    check_close(ops.to_numpy(models.load(case.folder)(case.images, hidden)), wanted)
    with pytest.raises(ValueError, match="no vector for hidden patches"):
        models.load(drawn("vit").folder)(case.images, hidden)


@pytest.mark.parametrize("name", ["dinov2", "siglip", "resnet", "convnext"])
def test_portable_tensors_are_taken(name: str, backend: str, drawn: Writing) -> None:
    case = drawn(name)
    arguments = [ember_ml.EmberTensor(part) for part in _arguments(name, case)]
    check_close(ops.to_numpy(models.load(case.folder)(*arguments)), case.result)


def test_vectors_of_texts_and_images(backend: str, drawn: Writing) -> None:
    """The logits are the cosines of the vectors, times a scale."""
    case = drawn("clip")
    model = models.load(case.folder)
    texts, images = (
        ops.to_numpy(x) for x in (model.embed_texts(case.tokens, case.mask), model.embed_images(case.images))
    )
    lengths = (images**2).sum(1, keepdims=True) ** 0.5 * (texts**2).sum(1) ** 0.5
    scale = ops.item(ops.exp(model.similarity.scale))
    check_close(images @ texts.T / lengths * scale, case.result)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["vit", "siglip"])
def test_half_precision_and_single_images(name: str, dtype: str, backend: str, drawn: Writing) -> None:
    case = drawn(name)
    arguments = _arguments(name, case)
    one = tuple(part[:1] for part in arguments)
    whole = ops.to_numpy(models.load(case.folder)(*one))
    check_close(whole, case.result[:1] if name == "vit" else case.result[:1, :1])
    half = models.load(case.folder, dtype=dtype)(*one)
    assert ops.dtype(half) == dtype
    error = ops.to_numpy(ops.abs(ops.subtract(ops.cast(half, "float32"), whole))).max()
    assert error < 0.1 * abs(whole).max()


@pytest.mark.long  # of compilation
@pytest.mark.parametrize("name", ["vit", "clip"])
def test_compiled_models_and_portable_tensors(name: str, backend: str, drawn: Writing) -> None:
    case = drawn(name)
    model = models.load(case.folder)
    arguments = [ember_ml.EmberTensor(part) for part in _arguments(name, case)]
    check_close(ops.to_numpy(ember_ml.compile(model)(*arguments)), case.result)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("vit", {"patch_size": 9}, "which are larger"),
        ("vit", {"image_size": [8, 8, 8]}, "a whole number or two of them"),
        ("vit", {"hidden_size": 24}, r"position_embeddings' in .* has the shape \(1, 5, 16\), .*hidden_size=24"),
        ("dinov2", {"use_swiglu_ffn": True}, r"lack 'encoder\.layer\.0\.mlp\.weights_in\.weight'"),
        ("clip", {"text_config": {"hidden_size": "x"}}, r"\(text_config\) has hidden_size = 'x'"),
        ("clip", {"vision_config": {}}, r"vision_config\.hidden_size=768"),
        ("siglip", {"text_config": []}, "a table of settings"),
        ("clip", {"architectures": ["SiglipVisionModel"]}, "the weights in"),
    ],
)
def test_wrong_settings_name_the_tensor_or_the_key(
    name: str, change: dict[str, Any], message: str, drawn: Writing, tmp_path: Path
) -> None:
    shutil.copytree(drawn(name).folder, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(ConfigError, match=message):
        models.load(tmp_path)


def test_wrong_images_say_what_is_expected(backend: str, drawn: Writing) -> None:
    model = models.load(drawn("vit").folder)
    with pytest.raises(ValueError, match="with 3 channels, not of shape"):
        model(ops.ones((1, 3, 8, 8)))
    with pytest.raises(ValueError, match="at most 9 of them"):
        models.load(drawn("clip-texts").folder)([[1] * 10])
    with pytest.raises(ValueError, match="vision_use_head"):
        models.load(drawn("siglip-headless").folder).embed(drawn("siglip-headless").images)


@pytest.mark.parametrize("name", ["vit-classifier", "siglip", "resnet-basic", "convnext-v2-classifier"])
def test_gradients_reach_every_parameter(name: str, backend: str, drawn: Writing) -> None:
    """A step against the gradient makes the loss smaller by the square of its length, in the mode of use."""
    case = drawn(name)
    model, arguments = models.load(case.folder), _arguments(name, case)
    value, gradients = nn.value_and_grad(model, lambda: ops.mean(ops.square(model(*arguments))))()
    assert set(gradients) == set(model.named_parameters())
    squares = {key: ops.item(ops.sum(ops.square(gradient))) for key, gradient in gradients.items()}
    assert all(square > 0 for square in squares.values()), [key for key, square in squares.items() if not square > 0]
    step = 1e-3 * ops.item(value) / sum(squares.values())
    for key, parameter in model.named_parameters().items():
        parameter.value = ops.subtract(parameter.value, ops.multiply(gradients[key], step))
    change = ops.item(value) - ops.item(ops.mean(ops.square(model(*arguments))))
    assert change == pytest.approx(step * sum(squares.values()), rel=0.1)


def test_batch_norms_count_the_batches_of_training(backend: str, drawn: Writing) -> None:
    case = drawn("resnet")
    model = models.load(case.folder).train()
    model(case.images)
    norm = model.stem.norm
    assert ops.item(norm.num_batches_tracked) == 4
    assert ops.dtype(norm.num_batches_tracked) == "int64"
