"""EMB503: code branches on which backend is active."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import natives
from ember_ml.lint.fix import Edit, Fix
from ember_ml.lint.rules.base import Rule
from ember_ml.lint.rules.chains import dedent
from ember_ml.lint.rules.shared import is_asserted, value_of
from ember_ml.lint.values import form_of

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext
    from ember_ml.lint.flow import Flow

_VARIABLES = frozenset({"backend", "backend_name", "current_backend", "active_backend"})


class BackendBranch(Rule):
    """Code branches on which backend is active."""

    code = "EMB503"
    name = "backend-branch"
    message = "front-end code branches on the backend; one op serves all"
    why = (
        "A branch per backend must be extended for every new one and tested on each. What really differs "
        "belongs into the backends."
    )
    nodes = (ast.Compare, ast.Match)
    bad = (
        "from ember_ml.backend import get_backend\n\ndef f():\n    if get_backend() == 'numpy':  # bad\n "
        "       return 1",
        "def f():\n    return get_backend() == 'torch'  # bad",
        "from ember_ml import backend\n\ndef f():\n    if backend.get_backend() in ('torch', 'mlx'):  # "
        "bad\n        return 1",
        "def f():\n    name = get_backend()\n    if name == 'mlx':  # bad\n        return 1",
        "def f(backend):\n    if backend == 'torch':  # bad\n        return 1",
        "def f():\n    while get_backend() != 'numpy':  # bad\n        pass",
        "def f():\n    match get_backend():  # bad\n        case 'numpy':\n            return 1",
        "from ember_ml import ops\n\ndef f():\n    return 1 if ops.get_backend() == 'jax' else 2  # bad",
        "def f():\n    if 'torch' == get_backend():  # bad\n        return 1",
    )
    good = (
        "from ember_ml.backend import get_backend\nprint(get_backend())",
        "def f(mode: str):\n    return mode == 'torch'",
        "def f(name):\n    return name == 'numpy'",
        "from ember_ml.backend import set_backend\nset_backend('torch')",
        "def test():\n    for backend in ['numpy', 'torch', 'mlx']:\n        ops.set_backend(backend)",
        "def f(backend):\n    return backend == 'sqlite'",
        "def f(backend):\n    return backend is None",
        "def f(kind):\n    return kind in ('torch', 'wood')",
        "from ember_ml.backend import get_backend\nassert get_backend() == 'numpy'",
        "def f(before, get_backend):\n    return before == 'numpy'",
    )

    def check(self, node: Any, flow: Flow) -> None:
        if isinstance(node, ast.Match):
            if _asks(node.subject, flow):
                flow.report(self, node)
            return
        sides = [node.left, *node.comparators]
        if not any(_asks(side, flow) for side in sides) or is_asserted(node, flow):
            return
        for side in sides:
            for part in ast.walk(side):
                if isinstance(part, ast.Constant) and part.value in natives.BACKEND_WORDS:
                    flow.report(self, node)
                    return

    def fix(self, node: Any, context: FixContext) -> Fix | None:
        """Replace a chain whose branches all do the same by that one body."""
        statement = context.module.parent(node)
        if not isinstance(statement, ast.If):
            return None
        outer = context.module.parent(statement)
        if isinstance(outer, ast.If) and outer.orelse == [statement]:
            return None
        branches: list[tuple[str, list[ast.stmt]]] = []
        current = statement
        while True:
            branches.append((_word(current.test), current.body))
            if (
                len(current.orelse) == 1
                and isinstance(current.orelse[0], ast.If)
                and _asks_compare(current.orelse[0].test, context.flow)
            ):
                current = current.orelse[0]
                continue
            if current.orelse:
                branches.append(("else", current.orelse))
            break
        words = {word for word, _ in branches}
        if not (words >= {"numpy", "torch", "mlx"} or "else" in words):
            return None
        chosen = _common(branches, context)
        if chosen is None:
            return None
        first, last = chosen[0], chosen[-1]
        text = context.module.source[context.start(first) : context.end(last)]
        text = dedent(text, first.col_offset - statement.col_offset)
        return Fix(
            "one op for all backends", (Edit(context.start(statement), context.end(statement), text),), needs_ops=False
        )


def _asks(node: Any, flow: Flow) -> Any:
    if isinstance(node, ast.Call):
        name = flow.dotted(node.func)
        last = name.rsplit(".", 1)[-1] if name else ""
        return (
            last in natives.BACKEND_FUNCTIONS
            and not node.args
            and (last != "backend" or (name or "").startswith(("ember_ml", "keras")))
        )
    if isinstance(node, ast.Name):
        if node.id in _VARIABLES and form_of(value_of(node)) not in ("ref", "inst", "bound"):
            return True
        return value_of(node).detail == ("backend",)
    return False


def _asks_compare(test: Any, flow: Flow) -> Any:
    return isinstance(test, ast.Compare) and any(_asks(side, flow) for side in [test.left, *test.comparators])


def _word(test: Any) -> Any:
    return next(
        (part.value for part in ast.walk(test) if isinstance(part, ast.Constant) and isinstance(part.value, str)), ""
    )


def _common(branches: Any, context: FixContext) -> Any:
    """Return the body that stands for all branches, or ``None`` if they differ."""
    dumps = [[_normal(statement, context) for statement in body] for _, body in branches]
    if all(dump == dumps[0] for dump in dumps):
        return branches[-1][1]
    # NumPy has no devices: leaving a tensor where it is equals moving it.
    moved = [index for index, dump in enumerate(dumps) if "to_device" in dump[0]]
    rest = [index for index in range(len(dumps)) if index not in moved]
    if moved and len(rest) == 1 and branches[rest[0]][0] == "numpy" and all(dumps[i] == dumps[moved[0]] for i in moved):
        statement = branches[moved[0]][1][0]
        plain = branches[rest[0]][1]
        if (
            len(plain) == 1
            and isinstance(statement, ast.Return)
            and isinstance(plain[0], ast.Return)
            and isinstance(statement.value, ast.Call)
            and statement.value.args
        ) and ast.dump(plain[0].value) == ast.dump(statement.value.args[0]):
            return branches[moved[0]][1]
    return None


def _normal(statement: Any, context: FixContext) -> Any:
    """Return a statement's syntax tree with the shape argument positional: keyword and place mean the same to an op."""
    copy = (
        ast.parse(ast.unparse(statement))
        if not isinstance(statement, ast.Return)
        else ast.parse("def f() -> Any:\n    " + ast.unparse(statement).replace("\n", "\n    "))
    )
    for call in ast.walk(copy):
        if isinstance(call, ast.Call) and not call.args and call.keywords and call.keywords[0].arg in ("shape", "x"):
            call.args = [call.keywords[0].value]
            call.keywords = call.keywords[1:]
    return ast.dump(copy)


RULE = BackendBranch()
