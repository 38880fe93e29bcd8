"""The registry: names, building from configurations and writing them, and what a file cannot do."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import nn, ops, training
from ember_ml import registry as default
from ember_ml.config.plain_data import parse, text_of
from ember_ml.config.registry import BackendContext, Registry
from ember_ml.errors import ConfigError, UnknownName

registry = Registry()


@registry.register("layers/linear")
class Linear:
    def __init__(self, width: int, bias: bool = True, scale: float | None = None) -> None:
        if width < 1:
            raise ValueError("width must be positive")
        self.width, self.bias, self.scale = width, bias, scale


@registry.register("layers/act")
@dataclass(frozen=True)
class Act:
    kind: Literal["relu", "tanh"] = "relu"
    limits: tuple[float, float] = (0.0, 1.0)


@registry.register("models/chain")
class Chain:
    def __init__(self, *parts: Linear | Act, name: str = "", **notes: int) -> None:
        self.parts, self.name, self.notes = parts, name, notes


class Encoder:
    def __init__(self, sizes: list[int], head: Any, context: Any) -> None:
        self.sizes, self.head, self.context = sizes, head, context


@registry.register("models/encoder")
@dataclass
class EncoderConfig:
    sizes: list[int]
    head: Linear | None = None
    options: dict[str, float] = field(default_factory=dict)

    def create(self, backend_context: Any) -> Encoder:
        return Encoder(self.sizes, self.head, backend_context)


@registry.register("models/pair")
def pair(left: int, right: int = 2) -> Encoder:
    return Encoder([left, right], None, None)


@registry.register("layers/nothing")
class Nothing:
    pass


@registry.register("layers/scaled")
class Scaled(nn.Module):
    def __init__(self, size: int, scale: float = 1.0, *factors: float, inner: Linear | None = None) -> None:
        self.scale = nn.Parameter([scale] * size)  # nothing is kept as it was given


CONFIG: dict[str, Any] = {
    "type": "models/chain",
    "parts": [{"type": "layers/linear", "width": 3, "bias": False}, {"type": "layers/act", "limits": [-1.0, 2.5]}],
    "name": "first",
    "depth": 7,
}


def test_names_and_lookup() -> None:
    assert registry.names("layers/") == ["layers/act", "layers/linear", "layers/nothing", "layers/scaled"]
    assert registry.lookup("layers/linear") is Linear
    assert "layers/act" in registry
    assert "layers" not in registry
    assert len(registry) == len(list(registry)) == 7


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("layers/liner", "did you mean 'layers/linear'"),
        ("blocks/linear", "'layers/linear'"),
        ("zzz", "names begin with layers/, models/"),
    ],
)
def test_an_unknown_name_gets_help(name: str, help: str) -> None:
    with pytest.raises(UnknownName, match=help):
        registry.lookup(name)
    with pytest.raises(LookupError, match=help):
        registry.build({"type": name})


def test_building_nested_configurations() -> None:
    chain = registry.build(CONFIG)
    assert type(chain) is Chain
    assert chain.notes == {"depth": 7}
    linear, act = chain.parts
    assert type(linear) is Linear
    assert linear.width == 3
    assert act == Act("relu", (-1.0, 2.5))


@pytest.mark.parametrize("form", ["json", "toml"])
def test_writing_and_reading_again(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"model.{form}"
    registry.save(registry.build(CONFIG), path)
    again = registry.load(path)
    parts = [CONFIG["parts"][0], {"type": "layers/act", "kind": "relu", "limits": [-1.0, 2.5]}]
    written = {**CONFIG, "parts": parts}
    assert registry.config_of(again) == written
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_objects_made_in_python_can_be_written() -> None:
    chain = Chain(Linear(width=3), Nothing(), name="x")  # type: ignore[arg-type]
    expected = {
        "type": "models/chain",
        "parts": [{"type": "layers/linear", "width": 3, "bias": True}, {"type": "layers/nothing"}],
        "name": "x",
    }
    assert registry.config_of(chain) == expected
    assert registry.config_of(copy.deepcopy(chain)) == expected
    assert registry.config_of(pickle.loads(pickle.dumps(chain))) == expected
    assert registry.config_of(registry.build({"type": "models/pair", "left": 1})) == {"type": "models/pair", "left": 1}


def test_modules_are_written_by_the_arguments_that_they_got(backend: str) -> None:
    module = Scaled(3, 2.0, 4.0, 5.0, inner=Linear(1))
    expected = {
        "type": "layers/scaled",
        "size": 3,
        "scale": 2.0,
        "factors": [4.0, 5.0],
        "inner": {"type": "layers/linear", "width": 1, "bias": True},
    }
    assert registry.config_of(module) == expected
    assert registry.config_of(copy.deepcopy(module)) == expected
    again = registry.build(expected)
    assert registry.config_of(again) == expected
    assert again.num_parameters == 3


def test_create_gets_the_backend_context(backend: str) -> None:
    config = {"type": "models/encoder", "sizes": [1, 2], "head": {"type": "layers/linear", "width": 1, "bias": True}}
    model = registry.build(config)
    assert type(model) is Encoder
    assert model.context == BackendContext(backend)
    assert registry.build(config, "mine").context == "mine"
    expected = {**config, "options": {}}
    assert registry.config_of(model) == expected
    assert registry.config_of(EncoderConfig([1, 2], Linear(1)).create(None)) == expected


def test_only_the_registered_class_itself_is_written() -> None:
    class Special(Linear):
        pass

    class Forgetful:
        def __init__(self, width: int) -> None:
            self.size = width

    with pytest.raises(ConfigError, match="Special was not made of a registered"):
        registry.config_of(Special(2))
    with pytest.raises(ConfigError, match=r"at parts\[0\]: Special"):
        registry.config_of(Chain(Special(2)))
    own = Registry()
    own.register("x")(Forgetful)
    with pytest.raises(ConfigError, match="Forgetful does not tell its 'width'"):
        own.config_of(Forgetful(2))


def test_registering_by_mistake() -> None:
    own = Registry()
    own.register("a/b")(Linear)
    with pytest.raises(ValueError, match="taken by"):
        own.register("a/b")(Chain)
    own.register("a/b")(Linear)
    for name in ("", "/a", "a//b", "a b", "../a", 3):
        with pytest.raises(ValueError, match="a name is made of words"):
            own.register(name)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'type'"):
        own.register("c")(lambda type: 0)
    with pytest.raises(TypeError, match="not 3"):
        own.register("d")(3)  # type: ignore[type-var]


def test_modules_are_imported_when_a_name_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "own_parts_of_test.py").write_text(
        "from tests.test_registry import late\n@late.register('late/part')\ndef part(): return [1]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert late.build({"type": "late/part"}) == [1]


def test_functions_stand_for_themselves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "own_functions_of_test.py").write_text(
        "from tests.test_registry import later\ndef half(x): return x / 2\nlater.register_function('own/half', half)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    later.register("models/act")(Holder)
    config = {"type": "models/act", "act": {"type": "own/half"}}
    model = later.build(config)  # the name is found in a module that nobody has imported yet
    assert model.act(3) == 1.5
    assert later.config_of(model) == config
    with pytest.raises(ConfigError, match="at act: own/half is a function as it is"):
        later.build({"type": "models/act", "act": {"type": "own/half", "x": 1}})
    with pytest.raises(ValueError, match="is taken"):
        later.register_function("models/act", math.sqrt)


class Holder:
    def __init__(self, act: Any) -> None:
        self.act = act


later = Registry(modules=("own_functions_of_test",))
late = Registry(modules=("own_parts_of_test",))


@pytest.mark.parametrize("value", ["same", 3, [1, 2], [[1, 0], [0, 2]], None, {"a": 1}, True])
def test_a_parameter_of_any_kind_takes_plain_data(value: Any) -> None:
    registry = Registry()
    registry.register("models/holder")(Holder)
    assert registry.build({"type": "models/holder", "act": value}).act == value


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"parts": []}, "the key 'type' is missing"),
    ({"type": 3}, "at type: expected a registered name, not 3"),
    ({"type": "os/system"}, "nothing is registered as 'os/system'"),
    ({"type": "layers/linear"}, "needs the key 'width'"),
    ({"type": "layers/linear", "width": 3, "baes": True}, "no key 'baes'; did you mean 'bias'?"),
    ({"type": "layers/nothing", "x": 1}, "no key 'x'; it has no keys"),
    ({"type": "layers/linear", "width": "3"}, "at width: expected int, found '3'"),
    ({"type": "layers/linear", "width": True}, "at width: expected int"),
    ({"type": "layers/linear", "width": 2.5}, "at width: expected int"),
    ({"type": "layers/linear", "width": 0}, "ValueError: width must be positive"),
    ({"type": "layers/linear", "width": 1, "scale": "big"}, "at scale: expected float | None"),
    ({"type": "layers/act", "kind": "gelu"}, "at kind: expected Literal"),
    ({"type": "layers/act", "limits": [1.0]}, "at limits: expected tuple"),
    ({"type": "models/chain", "parts": {"type": "layers/act"}}, "'parts' of models/chain is a list"),
    ({"type": "models/chain", "parts": [3]}, r"at parts\[0\]: expected"),
    ({"type": "models/chain", "parts": [{"type": "layers/act"}, {"type": "x"}]}, r"at parts\[1\]\.type: nothing is"),
    ({"type": "models/chain", "depth": "deep"}, "at depth: expected int"),
    ({"type": "models/encoder", "sizes": [1, "2"]}, "at sizes: expected list"),
    ({"type": "models/encoder", "sizes": [], "options": {"a": "b"}}, "at options: expected dict"),
    ({"type": "models/encoder", "sizes": [], "head": 5}, "at head: expected"),
]


@pytest.mark.parametrize("form", ["json", "toml"])
@pytest.mark.parametrize(("config", "message"), WRONG)
def test_errors_name_the_file_and_the_key(config: dict[str, Any], message: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / f"wrong.{form}"
    path.write_text(text_of(config, form), encoding="utf-8")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=message) as caught:
        registry.load(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '{"type": "a", "type": "b"}', "the key 'type' appears twice"),
        ("a.json", '{"type": NaN}', "NaN is no number of JSON"),
        ("a.json", "[" * 100_000, "no valid JSON"),
        ("a.json", '{"type": "layers/linear", "width": ' + "[" * 90 + "]" * 90 + "}", "nested 64 deep"),
        ("a.json", "[]", "a table of keys and values"),
        ("a.json", '{"type": "layers/linear", "width": ' + "9" * 5000 + "}", "no valid JSON"),
        ("a.toml", "type = ", "no valid TOML"),
        ("a.toml", "type = 1979-05-27", "plain data"),
        ("a.yaml", "", r"end in \.json or \.toml"),
        ("absent.json", None, "cannot be read"),
    ],
)
def test_files_that_hold_no_configuration(name: str, text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        registry.load(path)
    assert str(caught.value).startswith(str(path))


def test_a_thousand_mutated_files(tmp_path: Path) -> None:
    """Each builds what its text says or is a ConfigError that begins with the file; a wrong key is named."""
    chance = random.Random(5)
    built = refused = 0
    for number in range(1000):
        form = "json" if number % 2 else "toml"
        path = tmp_path / f"model.{form}"
        expected = None
        if number % 4 < 2:
            path.write_bytes(_damaged(text_of(CONFIG, form).encode(), chance))
        else:
            config, expected = _misled(chance)
            path.write_text(json.dumps(config) if form == "json" else text_of(config, form), encoding="utf-8")
        try:
            found = registry.load(path)
        except ConfigError as error:
            refused += 1
            message = str(error)
        else:
            built += 1
            assert expected is None, f"{expected}: a wrong value was accepted"
            assert type(found) in (Chain, Linear, Act, Nothing, Encoder)
            continue
        assert message.startswith(f"{path}: ")
        assert expected is None or expected in message
    assert refused > 800
    assert built > 10


def _damaged(text: bytes, chance: random.Random) -> bytes:
    """The text with a few bytes changed, left out, repeated or cut off."""
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(text) or 1)
        change = chance.randrange(5)
        if change == 0:
            text = text[:place] + bytes([chance.randrange(256)]) + text[place + 1 :]
        elif change == 1:
            text = text[:place] + text[place + chance.randint(1, 9) :]
        elif change == 2:
            text = text[:place] + text[chance.randrange(len(text) or 1) :][: chance.randint(1, 20)] + text[place:]
        elif change == 3:
            text = text[:place]
        else:
            text = text.replace(b"3", str(chance.choice([-1, 0, 7, 2**70])).encode(), 1)
    return text


def _misled(chance: random.Random) -> tuple[dict[str, Any], str]:
    """A configuration with one value that cannot be right, and what the error must name."""
    config = copy.deepcopy(CONFIG)
    part = chance.choice([config, *config["parts"]])
    key = chance.choice(list(part))
    if chance.random() < 0.2:
        wrong = f"unknown{chance.randrange(100)}"
        part[wrong] = chance.choice(["__import__('os')", "x" * chance.randrange(500)])
        return config, wrong
    values: list[Any] = [
        "os.system",
        "builtins/eval",
        "../../x",
        b"\0".decode(),
        {"a": 1},
        [[1]],
        -0.5,
        {"type": "zzz"},
    ]
    part[key] = chance.choice([value for value in values if not (key == "name" and isinstance(value, str))])
    return config, key if not isinstance(part[key], dict) or "type" not in part[key] or key == "type" else "zzz"


texts = st.text(st.characters(codec="utf-8"), max_size=8)
plain = st.recursive(
    st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(texts, plain, max_size=5))
def test_what_is_written_is_what_is_read(config: dict[str, Any]) -> None:
    def same(x: Any, y: Any) -> bool:
        if type(x) is not type(y):
            return False
        if isinstance(x, dict):
            return x.keys() == y.keys() and all(same(x[key], y[key]) for key in x)
        if isinstance(x, list):
            return len(x) == len(y) and all(map(same, x, y))
        return x == y or (isinstance(x, float) and math.isnan(x) and math.isnan(y))

    assert same(parse(text_of(config, "toml"), "toml"), config)
    if "nan" not in str(config) and "inf" not in str(config):
        assert same(parse(text_of(config, "json"), "json"), config)


@pytest.mark.parametrize(
    ("config", "form", "message"),
    [
        ({"a": [None]}, "toml", r"at a\[0\]: TOML has no null"),
        ({"a": {"b": math.inf}}, "json", r"at a\.b: JSON has no inf"),
        ({"a": object()}, "json", "at a: a configuration holds plain data"),
        ({"a": {1: 2}}, "json", "keys are strings"),
        ({"a": "\ud800"}, "json", "no text that a file can hold"),
    ],
)
def test_what_a_file_cannot_hold(config: dict[str, Any], form: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        text_of(config, form)


def test_the_documents_example(backend: str) -> None:
    from ember_ml.config.registry import Registry, register

    class TransformerModel:
        def __init__(self, hidden_size: int) -> None:
            self.hidden_size = hidden_size

    @register("models/transformer_of_the_test")
    class TransformerConfig:
        """Configuration for Transformer model."""

        def __init__(self, hidden_size: int) -> None:
            self.hidden_size = hidden_size

        def create(self, backend_context: Any) -> TransformerModel:
            """Create model instance using current backend."""
            return TransformerModel(self.hidden_size)

    assert isinstance(default._default, Registry)
    model = ember_ml.config.registry.build({"type": "models/transformer_of_the_test", "hidden_size": 64})
    assert type(model) is TransformerModel
    assert model.hidden_size == 64


def test_activations_have_the_names_of_their_functions() -> None:
    named = {name.removeprefix("activations/") for name in default.names("activations/")}
    assert {"relu", "relu6", "leaky_relu", "prelu", "silu", "hard_silu", "gelu", "selu", "celu", "elu", "glu"} <= named
    assert not [name for name in default.names() if "re_lu" in name or "si_lu" in name or "swi_glu" in name]
    assert {"layers/rms_norm", "layers/mlp", "layers/lstm", "layers/swiglu"} <= set(default.names("layers/"))


def test_an_optimizer_of_ones_own_is_used_by_its_name(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default._default, "_things", dict(default._default._things))

    @default.register("optimizers/halving")
    class Halving(training.optimizers.Optimizer):
        def __init__(self) -> None:
            super().__init__(1.0)

        def rule(self, parameter: Any, gradient: Any, state: Any, scalars: Any) -> list[Any]:
            return [ops.multiply(parameter, 0.5)]

    model = nn.Linear(2, 1, bias=False).load_state_dict({"weight": [[2.0, 4.0]]})
    trainer = training.Trainer(model, "halving", "mean_squared_error")
    trainer.step((ops.ones((3, 2)), ops.ones((3, 1))))
    assert type(trainer.optimizer) is Halving
    assert ops.to_numpy(model.weight).tolist() == [[1.0, 2.0]]


def test_names_of_every_kind_are_found_by_one_function() -> None:
    assert type(default.get("losses", "huber_loss")) is training.losses.Huber
    assert type(default.get("metrics", "accuracy")) is training.metrics.Accuracy
    assert type(default.get("optimizers", "adam")) is training.optimizers.Adam
    assert type(default.get("activations", "relu")) is nn.ReLU
    assert default.get("ops", "relu") is ops.relu
    thing = object()
    assert default.get("losses", thing) is thing
