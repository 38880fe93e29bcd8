"""Describe an op in sentences: its signature, its dtypes, its gradient. For pages and commands."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType
from ember_ml.dispatch.declare import DATA, SEQUENCE, TENSOR, VALUE, Op
from ember_ml.dispatch.dtype_rules import CREATION, Rule

__all__ = ["describe_dtypes", "describe_gradient", "join_words", "write_signature"]

_KINDS = (("bool", dt.BOOL), ("integers", dt.INTEGERS), ("floats", dt.FLOATS), ("complex numbers", dt.COMPLEX))
_RESULTS = {
    "same": "has the dtype in which it computes",
    "real": "is real: for complex numbers it has the dtype of their parts, otherwise the dtype in which it computes",
    "complex": "is complex, of the same precision",
    "wide": "has the dtype in which it computes; integers are 64 bits wide",
}


def join_words(names: Sequence[str]) -> str:
    """Return the names as a list in a sentence: "a, b and c"."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def write_signature(signature: inspect.Signature, width: int = 80) -> str:
    """Return a signature as it is written in the source, one parameter to a line where it is longer than ``width``."""
    written, kinds = [], inspect.Parameter
    for parameter in signature.parameters.values():
        if parameter.kind is kinds.KEYWORD_ONLY and not any(text.startswith("*") for text in written):
            written.append("*")
        star = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        annotation = "" if parameter.annotation is kinds.empty else f": {_type(parameter.annotation)}"
        default = "" if parameter.default is kinds.empty else f" = {_default(parameter.default)}"
        written.append(f"{star}{parameter.name}{annotation}{default}")
    result = signature.return_annotation
    after = "" if result is inspect.Signature.empty else f" -> {_type(result)}"
    line = f"({', '.join(written)}){after}"
    return line if len(line) <= width else "(\n" + "".join(f"    {text},\n" for text in written) + f"){after}"


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _default(value: Any) -> str:
    """Return a default as it is written: a function or class by its name, not by its address."""
    return value.__name__ if inspect.isroutine(value) or inspect.isclass(value) else repr(value)


def describe_dtypes(op: Op) -> str:
    """Return which dtypes the op takes, how they are promoted, and the dtype of the result."""
    rule, tensors = op.rule, [role for _, role in op.roles if role in (TENSOR, SEQUENCE, VALUE)]
    if rule is CREATION or (rule.result == "own" and not rule.promotes):
        if "dtype" not in op.parameters:
            return "That of the data, unless the description says otherwise."
        is_needed = op.signature.parameters["dtype"].default is inspect.Parameter.empty
        return "`dtype`." if is_needed else "`dtype`; by default float32, unless the description says otherwise."
    said = []
    if tensors:
        said.append(f"It takes {_describe_domain(rule)}.")
        if rule.lift:
            said.append(f"Integers{' and bools' if rule.lift_bool else ''} are computed in float32.")
        if rule.promotes and (len(tensors) > 1 or SEQUENCE in tensors):
            said.append("Tensors are promoted to one dtype; Python numbers take that of the tensors.")
        if rule.contraction and len(tensors) > 1:
            said.append("Half precision does not mix with wider floats: `TypeError`.")
    if not rule.promotes and rule.result == "same":
        said.append("It keeps the dtype.")
    elif rule.result != "own":
        said.append(f"The result {_RESULTS.get(rule.result, f'is `{rule.result}`')}.")
    return " ".join(said)


def _describe_domain(rule: Rule) -> str:
    """Return the dtypes of a rule, by kind where it takes all of a kind."""
    if rule.domain >= dt.ALL:
        return "every dtype"
    whole = [name for name, dtypes in _KINDS if dtypes <= rule.domain]
    covered: frozenset[EmberDType] = frozenset().union(*(dtypes for _, dtypes in _KINDS if dtypes <= rule.domain))
    return join_words(whole + [f"`{dtype}`" for dtype in sorted(map(str, rule.domain - covered))])


def describe_gradient(op: Op) -> str:
    """Return with respect to which parameters the op is differentiable."""
    if op.rule.result in ("bool", "int64"):
        return "None: the result is constant to every gradient."
    if not any(role in (TENSOR, SEQUENCE, DATA, VALUE) for _, role in op.roles):
        return "None: it takes no tensors."
    known = [f"`{name}`" for name, rule in op.gradients.items() if rule is not None]
    flat = [f"`{name}`" for name, rule in op.gradients.items() if rule is None]
    said = [f"Differentiable with respect to {join_words(known)}." if known else ""]
    if flat:
        said.append(f"The gradient with respect to {join_words(flat)} is zero.")
    if not op.gradients:
        said.append("Through the ops that it is composed of." if op.derived else "Not differentiable: `TypeError`.")
    return " ".join(part for part in said if part)
