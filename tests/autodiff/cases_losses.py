"""Gradient cases of the normalizations and the losses."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from tests.autodiff.case import Numbers, case, numbers

_X, _W, _B = numbers(2, 3, 4), numbers(4, low=0.5, seed=1), numbers(4, seed=2)
case("layer_normalization", ("x", "gamma", "beta"), x=_X, gamma=_W, beta=_B)
case("layer_normalization", ("x", "beta"), x=_X, beta=_B, label="no gamma")
case("layer_normalization", x=_X, axis=(0, 2), label="axes")
case("layer_normalization", ("x", "gamma"), x=_X, gamma=numbers(3), axis=1, label="middle")
case("rms_normalization", ("x", "scale"), x=_X, scale=_W)
case("rms_normalization", x=_X, axis=0, label="axis")
case(
    "batch_normalization",
    ("x", "mean", "variance", "offset", "scale"),
    x=_X,
    mean=_B,
    variance=numbers(4, low=0.5, seed=3),
    axis=-1,
    offset=_B,
    scale=_W,
)
_RESULT: Any = lambda **arguments: ops.moments_normalization(**arguments)[0]  # noqa: E731  (the others are constants)
case("moments_normalization", ("x", "offset", "scale"), x=_X, offset=_B, scale=_W, call=_RESULT)
case("moments_normalization", x=_X, axis=1, call=_RESULT, label="axis")
case("group_normalization", ("x", "gamma", "beta"), x=_X, groups=2, gamma=_W, beta=_B)
case("group_normalization", x=numbers(2, 4, 3), groups=2, axis=1, label="axis")

_PAIR: dict[str, Any] = {"target": numbers(3, 4), "output": numbers(3, 4, seed=1)}
_BOTH = ("target", "output")
for _name in ("mean_squared_error", "mean_absolute_error", "huber_loss", "log_cosh_loss"):
    case(_name, _BOTH, **_PAIR)
    case(_name, _BOTH, **_PAIR, axis=(), label="elements")
case("huber_loss", _BOTH, **_PAIR, delta=0.3, axis=None, label="small delta")
case("log_cosh_loss", _BOTH, target=Numbers((0.0, 0.0), (2,)), output=Numbers((0.0, 40.0), (2,)), label="zero and far")
_CHANCES: dict[str, Any] = {
    "target": numbers(3, 4, low=0.1, high=0.9),
    "output": numbers(3, 4, low=0.1, high=0.9, seed=1),
}
for _name in ("kl_divergence", "binary_crossentropy", "categorical_crossentropy"):
    case(_name, _BOTH, **_CHANCES)
    case(_name, _BOTH, **_CHANCES, axis=0, label="axis")
_LOGITS: dict[str, Any] = {"target": _CHANCES["target"], "output": numbers(3, 4, low=-4.0, high=4.0)}
for _name in ("binary_crossentropy", "categorical_crossentropy"):
    case(_name, _BOTH, **_LOGITS, from_logits=True, label="logits")
case(
    "binary_crossentropy", _BOTH, target=numbers(1, 2), output=Numbers((0.0, 0.0), (1, 2)), from_logits=True, label="0"
)
_CLASSES = Numbers((1, 0, 3), (3,), "int")
for _logits in (False, True):
    output = _LOGITS["output"] if _logits else _CHANCES["output"]
    case(
        "sparse_categorical_crossentropy",
        "output",
        target=_CLASSES,
        output=output,
        from_logits=_logits,
        label=f"{_logits}",
    )
case(
    "ctc_loss",
    "output",
    target=Numbers((1, 1, 2, 1), (2, 2), "int"),
    output=numbers(2, 4, 3),
    target_length=Numbers((2, 1), (2,), "int"),
    output_length=Numbers((4, 3), (2,), "int"),
)
