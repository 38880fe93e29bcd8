"""Mutants: one impurity put into a clean file, with the rule that must find it and whether its repair must undo it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ember_ml.lint.replacements import OPERATORS, SYMBOLS
from ember_ml.lint.tables import words

BINARY = {op: SYMBOLS[name] for name, op in OPERATORS.items() if name not in ("USub", "UAdd", "Invert")}
COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
NUMPY = words(
    """
    mean sum exp log sqrt abs square matmul max min argmax where stack reshape transpose maximum minimum prod
    cumsum subtract add multiply divide sin cos dot
    """
)
TORCH = words("exp log sqrt abs square matmul where stack reshape sin cos mean sum")
METHODS = words("mean sum exp log sqrt abs reshape argmax cumsum")


@dataclass(frozen=True)
class Mutant:
    """A mutated text."""

    kind: str
    code: str
    text: str
    line: int
    undone: bool  # whether --fix must give back the original's syntax tree


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a clean file."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and getattr(node.func.value, "id", "") == "ops"
        ):
            yield from _call_mutants(source, node)
        elif (
            isinstance(node, ast.Attribute)
            and getattr(node.value, "id", "") == "ops"
            and node.attr in ("float32", "float16", "int32", "int64")
        ):
            yield _with_import(source, "native dtype", "EMB601", node, f"np.{node.attr}", "import numpy as np")
        elif isinstance(node, ast.Assign):
            yield from _assign_mutants(source, node)
        elif isinstance(node, ast.FunctionDef):
            yield from _function_mutants(source, node)
    yield from _file_mutants(source)


def _replace(source: str, node: ast.expr | ast.stmt, text: str) -> str:
    lines = source.split("\n")

    def offset(line: int, column: int) -> int:
        return sum(len(text) + 1 for text in lines[: line - 1]) + len(lines[line - 1].encode()[:column].decode())

    before = offset(node.lineno, node.col_offset)
    after = offset(node.end_lineno or 0, node.end_col_offset or 0)
    return source[:before] + text + source[after:]


def _with_import(source: str, kind: str, code: str, node: ast.expr | ast.stmt, text: str, line: str) -> Mutant:
    mutated = _replace(source, node, text)
    return Mutant(
        kind,
        code,
        mutated.replace("from ember_ml import ops\n", f"from ember_ml import ops\n{line}\n", 1),
        node.lineno + 1,
        True,
    )


def _call_mutants(source: str, node: ast.Call) -> Iterator[Mutant]:
    op = node.func.attr  # type: ignore[attr-defined]
    arguments = [ast.get_source_segment(source, argument) or "" for argument in node.args]
    rest = [ast.get_source_segment(source, keyword) or "" for keyword in node.keywords]
    if op in BINARY and len(arguments) == 2 and not rest:
        code = "EMB401" if op not in COMPARISONS else "EMB404"
        if code == "EMB401" or not isinstance(node.args[1], (ast.Constant, ast.BinOp)):
            yield Mutant(
                "operator",
                code,
                _replace(source, node, f"(({arguments[0]}) {BINARY[op]} ({arguments[1]}))"),
                node.lineno,
                True,
            )
    if op == "negative":
        yield Mutant("minus", "EMB401", _replace(source, node, f"(-({arguments[0]}))"), node.lineno, True)
    if op == "abs":
        yield Mutant("builtin", "EMB406", _replace(source, node, f"abs({arguments[0]})"), node.lineno, True)
    if op in NUMPY:
        yield _with_import(
            source, "numpy call", "EMB201", node, f"np.{op}({', '.join([*arguments, *rest])})", "import numpy as np"
        )
    if op in TORCH and not any("keepdims" in word for word in rest):
        renamed = [word.replace("axis=", "dim=") for word in rest]
        yield _with_import(
            source, "torch call", "EMB201", node, f"torch.{op}({', '.join([*arguments, *renamed])})", "import torch"
        )
    if op in METHODS and isinstance(node.args[0], (ast.Name, ast.Call)):
        yield Mutant(
            "method",
            "EMB402",
            _replace(source, node, f"{arguments[0]}.{op}({', '.join([*arguments[1:], *rest])})"),
            node.lineno,
            True,
        )
    if op == "cast" and arguments[1:] == ["ops.float32"]:
        yield Mutant("native cast", "EMB602", _replace(source, node, f"({arguments[0]}).float()"), node.lineno, True)
    if op == "random_normal":
        text = _with_import(source, "", "", node, f"torch.randn({arguments[0]})", "import torch").text
        yield Mutant("native random", "EMB701", text, node.lineno + 1, False)
    if op in ("sum", "mean", "max", "min", "norm", "dot"):
        text = ast.get_source_segment(source, node)
        yield Mutant("float()", "EMB301", _replace(source, node, f"float({text})"), node.lineno, False)
        yield Mutant("item()", "EMB302", _replace(source, node, f"{text}.item()"), node.lineno, False)
    if op in ("exp", "square", "subtract", "matmul", "relu", "softmax"):
        text = ast.get_source_segment(source, node)
        yield Mutant("numpy()", "EMB202", _replace(source, node, f"{text}.numpy()"), node.lineno, False)
        yield Mutant("cuda()", "EMB702", _replace(source, node, f"{text}.cuda()"), node.lineno, False)


def _assign_mutants(source: str, node: ast.Assign) -> Iterator[Mutant]:
    target, value = node.targets[0], node.value
    if not (
        isinstance(target, ast.Name)
        and isinstance(value, ast.Call)
        and getattr(value.func, "attr", "") in ("add", "subtract", "multiply", "divide")
    ):
        return
    if isinstance(value.args[0], ast.Name) and value.args[0].id == target.id:
        symbol = BINARY[value.func.attr]  # type: ignore[attr-defined]
        yield Mutant(
            "in place",
            "EMB403",
            _replace(source, node, f"{target.id} {symbol}= {ast.get_source_segment(source, value.args[1])}"),
            node.lineno,
            True,
        )


def _function_mutants(source: str, node: ast.FunctionDef) -> Iterator[Mutant]:
    tensors = [a.arg for a in node.args.args if a.annotation is not None and ast.unparse(a.annotation) == "Tensor"]
    first = node.body[0]
    if not tensors or isinstance(first, ast.Expr):
        return
    x = tensors[0]
    indent = " " * first.col_offset
    lines = source.split("\n")

    def inserted(kind: str, code: str, text: str, at: int = 0) -> Mutant:
        new = [*lines[: first.lineno - 1], *(indent + line for line in text.split("\n")), *lines[first.lineno - 1 :]]
        return Mutant(kind, code, "\n".join(new), first.lineno + at, False)

    yield inserted("truth", "EMB303", f"if {x}:\n    pass")
    yield inserted("assert", "EMB303", f"assert ops.all({x})")
    yield inserted("loop", "EMB801", f"for row in {x}:\n    print(row)")
    yield inserted("range loop", "EMB801", f"for i in range(len({x})):\n    print({x}[i])")
    yield inserted("write", "EMB403", f"{x}[0] = 0.0")
    yield inserted("isinstance", "EMB501", f"import torch\nprint(isinstance({x}, torch.Tensor))", 1)
    yield inserted("hasattr", "EMB502", f"print(hasattr({x}, 'detach'))")
    yield inserted(
        "branch", "EMB503", "from ember_ml.backend import get_backend\nif get_backend() == 'torch':\n    print()", 1
    )
    yield inserted("late import", "EMB101", "import numpy as np\nprint(np.mean)")
    yield inserted("importlib", "EMB103", "import importlib\nprint(importlib.import_module('torch'))", 1)
    yield inserted("device", "EMB702", f"print({x}.to('cuda'))")
    yield inserted("int()", "EMB301", f"print(int({x}))")
    yield inserted("transposed", "EMB402", f"print({x}.T)")


def _file_mutants(source: str) -> Iterator[Mutant]:
    line = source[: source.index("from ember_ml import ops")].count("\n") + 1
    for text, code in (
        ("import numpy", "EMB101"),
        ("import torch", "EMB101"),
        ("from mlx import core", "EMB101"),
        ("from numpy import linalg", "EMB101"),
    ):
        yield Mutant(
            "import",
            code,
            source.replace("from ember_ml import ops\n", f"from ember_ml import ops\n{text}\n", 1),
            line + 1,
            True,
        )
    yield Mutant(
        "internals",
        "EMB102",
        source.replace(
            "from ember_ml import ops\n", "from ember_ml import ops\nfrom ember_ml.backend.torch import stats\n", 1
        ),
        line + 1,
        False,
    )
    yield Mutant(
        "old name",
        "EMB104",
        source.replace("from ember_ml import ops\n", "from emberharmony import ops\n", 1),
        line,
        True,
    )
