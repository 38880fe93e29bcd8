"""LoRA and DoRA compute and learn what PEFT's do, in its files; merging and removing them changes what it should."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import models, nn, ops
from ember_ml.errors import ConfigError
from ember_ml.training import Trainer, losses, optimizers
from tests.reference import pretrained
from tests.reference.pretrained import Written, check_close

Writing = Callable[[str], Written]
TOKENS = [[3, 4, 5], [6, 7, 8]]
ADAPTERS: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    "llama": ("llama", ["q_proj", "v_proj"], {"r": 4, "lora_alpha": 8}),
    "biases": ("llama-biases", ["k_proj", "o_proj", "up_proj", "down_proj"], {"r": 2, "use_dora": True}),
    "stable": ("qwen3", ["q_proj", "gate_proj"], {"r": 3, "use_rslora": True, "lora_alpha": 5}),
    "fused": ("phi3", ["qkv_proj", "gate_up_proj"], {"r": 4, "lora_dropout": 0.1}),
    "transposed": ("gpt2", ["c_attn", "c_fc"], {"r": 4, "fan_in_fan_out": True, "use_dora": True}),
    "encoder": ("bert-words", ["query", "dense"], {"r": 2}),
    "tied": ("llama-tied", ["q_proj", "lm_head"], {"r": 4}),
}


@pytest.fixture(scope="session")
def adapter(written: Writing, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path, Any]]:
    """Write an adapter with PEFT, at its first use: the folder of the model, its own, and the logits with it."""
    pytest.importorskip("peft")
    from tests.reference import adapters

    root = tmp_path_factory.mktemp("adapters")

    def make(name: str) -> tuple[Path, Path, Any]:
        case, targets, settings = ADAPTERS[name]
        base = written(case).folder
        return base, root / name, adapters.write(case, base, root / name, targets, **settings)

    return cache(make)


Adapting = Callable[[str], tuple[Path, Path, Any]]


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters_of_peft_give_its_logits(name: str, backend: str, adapter: Adapting) -> None:
    base, folder, wanted = adapter(name)
    check_close(ops.to_numpy(models.load_adapter(models.load(base), folder)(TOKENS)), wanted)


@pytest.mark.parametrize("name", ADAPTERS)
def test_peft_opens_what_was_saved_here(name: str, backend: str, adapter: Adapting, tmp_path: Path) -> None:
    from tests.reference import adapters

    base, folder, _ = adapter(name)
    model = models.load_adapter(models.load(base), folder)
    for parameter in model.trainable().values():
        parameter.value = ops.multiply(parameter.value, 1.25)
    models.save_adapter(model, tmp_path)
    ours, theirs = pretrained.read_weights(tmp_path), pretrained.read_weights(folder)
    assert {key: ours[key][:2] for key in ours} == {key: theirs[key][:2] for key in theirs if ".lora_" in key}
    check_close(ops.to_numpy(model(TOKENS)), adapters.logits(ADAPTERS[name][0], base, tmp_path))


def _batches(count: int) -> list[list[list[int]]]:
    """Texts in which each token is the one before it times 5, plus 3, in turns of different beginnings."""
    texts = []
    for start in range(3 * count):
        text = [3 + start * 7 % 58]
        for _ in range(9):
            text.append(3 + text[-1] * 5 % 58)
        texts.append(text)
    return [texts[3 * i : 3 * i + 3] for i in range(count)]


def _losses(model: models.PretrainedModel, count: int, is_compiled: bool = False) -> list[float]:
    """Train an adapter in a loop of one's own; return the loss of each batch."""
    optimizer, found = optimizers.AdamW(0.01, weight_decay=0.01), []

    def loss(x: Any, y: Any) -> Any:
        return losses.sparse_categorical_crossentropy(y, model(x))

    step = nn.value_and_grad(model, loss)
    step = ember_ml.compile(step) if is_compiled else step
    for batch in _batches(count):
        x, y = ops.array([text[:-1] for text in batch]), ops.array([text[1:] for text in batch])
        value, gradients = step(x, y)
        optimizer.update(model, gradients)
        found.append(ops.item(value))
    return found


@pytest.mark.parametrize("name", ["llama", "biases"])
def test_fifty_steps_have_the_losses_of_peft(name: str, backend: str, adapter: Adapting) -> None:
    from tests.reference import adapters

    base, folder, _ = adapter(name)
    wanted = adapters.train(ADAPTERS[name][0], base, folder, _batches(50), 0.01)
    found = _losses(models.load_adapter(models.load(base), folder), 50)
    assert found == pytest.approx(wanted, rel=1e-4, abs=1e-4)
    assert found[-1] < 0.8 * found[0]


@pytest.mark.parametrize("is_dora", [False, True])
def test_only_the_adapter_learns(is_dora: bool, backend: str, written: Writing) -> None:
    model = models.load(written("llama").folder)
    plain = ops.to_numpy(model(TOKENS))
    models.add_lora(model, 4, 8, is_dora=is_dora)
    check_close(ops.to_numpy(model(TOKENS)), plain)  # it adds nothing yet
    before = model.state_dict()
    _losses(model, 2)
    after = model.state_dict()
    changed = {key for key in after if not ops.item(ops.all(ops.equal(before[key], after[key])))}
    assert changed == set(model.trainable()) == {key for key in after if ".lora." in key}


@pytest.mark.long
@pytest.mark.parametrize("is_dora", [False, True])
def test_compiled_training_has_the_same_losses(is_dora: bool, backend: str, written: Writing, tmp_path: Path) -> None:
    base = written("llama").folder
    models.save_adapter(models.add_lora(models.load(base), 4, 8, ("q_proj", "down_proj"), is_dora=is_dora), tmp_path)
    eager, compiled = (
        _losses(models.load_adapter(models.load(base), tmp_path), 4, is_compiled) for is_compiled in (False, True)
    )
    assert compiled == pytest.approx(eager, rel=1e-5)


def _shaken(model: models.PretrainedModel) -> models.PretrainedModel:
    for i, parameter in enumerate(model.trainable().values()):
        waves = ops.sin(ops.reshape(ops.arange(1.0 + i, parameter.size + 1.0 + i), parameter.shape))
        parameter.value = ops.add(parameter.value, ops.multiply(waves, 0.1))
    return model


@pytest.mark.parametrize(("name", "is_dora"), [("llama", False), ("gpt2", True), ("llama-biases", True)])
def test_merged_weights_are_those_of_the_formula(
    name: str, is_dora: bool, backend: str, written: Writing, tmp_path: Path
) -> None:
    base = written(name).folder
    model = _shaken(models.add_lora(models.load(base), 2, 6, is_dora=is_dora))
    wanted, before = ops.to_numpy(model(TOKENS)), model.state_dict()
    models.merge_adapter(model)
    check_close(ops.to_numpy(model(TOKENS)), wanted)
    assert not model.trainable()
    name_of = "layers.1.attention.output" if name == "gpt2" else "layers.1.attention.query"
    weight, down, up = (before[f"{name_of}.{end}.weight"] for end in ("base", "lora.down", "lora.up"))
    weight = ops.add(weight, ops.multiply(ops.matmul(up, down), 3.0))
    if is_dora:
        length = ops.sqrt(ops.sum(ops.square(weight), 1))
        weight = ops.multiply(weight, ops.expand_dims(ops.divide(before[f"{name_of}.lora.magnitude"], length), 1))
    merged = model.state_dict()[f"{name_of}.base.weight"]
    assert ops.item(ops.max(ops.abs(ops.subtract(merged, weight)))) < 1e-5

    models.unmerge_adapter(model)
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(ops.item(ops.all(ops.equal(after[key], before[key]))) for key in after)

    models.remove_adapter(models.merge_adapter(model)).save(tmp_path)
    check_close(pretrained.result_of_folder(name, tmp_path, TOKENS), wanted)


def test_an_adapter_is_removed(backend: str, written: Writing) -> None:
    case = written("llama")
    model = models.remove_adapter(_shaken(models.add_lora(models.load(case.folder))))
    check_close(ops.to_numpy(model(case.tokens)), case.result)
    assert models.add_lora(model, 3).adapter.rank == 3


def test_targets_are_names_in_files(backend: str, written: Writing) -> None:
    model = models.add_lora(models.load(written("llama").folder), 2, targets=("layers.1.self_attn.k_proj", "up_proj"))
    assert [name for name in model.trainable() if name.endswith("up.weight")] == [
        "layers.0.mlp.up.lora.up.weight",
        "layers.1.attention.key.lora.up.weight",
        "layers.1.mlp.up.lora.up.weight",
    ]
    model = models.add_lora(models.load(written("llama").folder))
    wanted = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert set(model.adapter.targets) == wanted
    assert len(model.trainable()) == 2 * 2 * 7
    model = models.add_lora(models.load(written("bert-sequence").folder))
    assert set(model.adapter.targets) == {"query", "key", "value", "dense"}
    with pytest.raises(ValueError, match=r"k_proj.*not 'qproj'"):
        models.add_lora(models.load(written("llama").folder), targets=("q_proj", "qproj"))
    with pytest.raises(ValueError, match="rank"):
        models.add_lora(models.load(written("llama").folder), rank=0)


def test_mistakes_are_named(written: Writing, tmp_path: Path) -> None:
    model = models.load(written("llama-tied").folder)
    for function in (models.merge_adapter, models.unmerge_adapter, models.remove_adapter):
        with pytest.raises(ValueError, match="no adapter"):
            function(model)
    with pytest.raises(ValueError, match="no adapter"):
        models.save_adapter(model, tmp_path)
    models.add_lora(model, targets=("lm_head",))
    with pytest.raises(ValueError, match="has an adapter already"):
        models.add_lora(model)
    with pytest.raises(ValueError, match="save_adapter"):
        model.save(tmp_path)
    with pytest.raises(ValueError, match="not merged"):
        models.unmerge_adapter(model)
    with pytest.raises(ValueError, match=r"lm_head.*embedding"):
        models.merge_adapter(model)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"peft_type": "IA3"}, "peft_type = 'IA3'"),
        ({"r": 3}, r"q_proj\.lora_A.*\(2, 32\).*r = 3.*\(3, 32\)"),
        ({"r": "2"}, "r = '2'"),
        ({"use_dora": True}, "lacks the tensor .*lora_magnitude_vector"),
        ({"bias": "all"}, "bias = 'all'"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"alpha_pattern": {"q_proj": 3}}, "alpha_pattern"),
        ({"lora_alpha": None, "use_rslora": 1}, "use_rslora"),
        ({"lora_dropout": 1.5}, "lora_dropout"),
        ({"target_modules": 7}, "target_modules"),
    ],
)
def test_wrong_adapters_are_refused(
    changes: dict[str, Any], message: str, backend: str, written: Writing, tmp_path: Path
) -> None:
    base = written("llama").folder
    models.save_adapter(models.add_lora(models.load(base), 2, targets=("q_proj",)), tmp_path)
    path = tmp_path / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    model = models.load(base)
    with pytest.raises(ConfigError, match=message):
        models.load_adapter(model, tmp_path)
    assert model.adapter is None
    assert all(parameter.is_trainable for parameter in model.parameters())


def test_a_copy_of_other_weights_is_refused(adapter: Adapting, written: Writing) -> None:
    _, folder, _ = adapter("tied")
    model = models.load(written("llama-tied").folder)
    model.embedding.weight = ops.multiply(model.embedding.weight, 2.0)
    with pytest.raises(ConfigError, match=r"another lm_head\.weight"):
        models.load_adapter(model, folder)


def test_an_adapter_of_another_model_is_refused(written: Writing, tmp_path: Path) -> None:
    models.save_adapter(models.add_lora(models.load(written("llama").folder), 2), tmp_path)
    with pytest.raises(ConfigError, match=r"'base_model\.model\.model\.layers.*no linear map.*c_attn"):
        models.load_adapter(models.load(written("gpt2").folder), tmp_path)
    (tmp_path / "adapter_model.safetensors").rename(tmp_path / "adapter_model.bin")
    with pytest.raises(ConfigError, match="a pickle"):
        models.load_adapter(models.load(written("llama").folder), tmp_path)


def test_the_trainer_trains_an_adapter_that_is_saved(backend: str, written: Writing, tmp_path: Path) -> None:
    def trainer() -> Trainer:
        ops.random.seed(0)
        model = models.add_lora(models.load(written("llama").folder), 4, dropout=0.1)
        return Trainer(model, optimizers.AdamW(0.01), "sparse_categorical_crossentropy", progress=False)

    texts = ops.array([text for batch in _batches(8) for text in batch])
    x, y = texts[:, :-1], texts[:, 1:]
    whole = trainer()
    whole.fit(x, y, epochs=4, batch_size=8)
    assert whole.history["loss"].epochs[-1] < 0.9 * whole.history["loss"].epochs[0]
    first = trainer()
    first.fit(x, y, epochs=2, batch_size=8)
    first.model.train(False)
    models.save_adapter(first.model, tmp_path)
    again = models.load_adapter(models.load(written("llama").folder), tmp_path)
    check_close(ops.to_numpy(again(TOKENS)), ops.to_numpy(first.model(TOKENS)))


def test_half_precision_has_adapters_in_float32(backend: str, written: Writing) -> None:
    model = models.add_lora(models.load(written("llama").folder, dtype="bfloat16"))
    assert {parameter.dtype.name for parameter in model.trainable().values()} == {"float32"}
    assert ember_ml.core.dtypes.as_dtype(model(TOKENS).dtype).name == "bfloat16"
    state = model.initial_state(2)
    logits, _ = model(TOKENS, state=state)
    assert ember_ml.core.dtypes.as_dtype(logits.dtype).name == "bfloat16"
    _, gradients = nn.value_and_grad(model, lambda: ops.mean(ops.cast(model(TOKENS), "float32")))()
    assert set(gradients) == set(model.trainable())
