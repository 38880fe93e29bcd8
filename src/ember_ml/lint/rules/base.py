"""The base class of rules."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ember_ml.lint.fix import Fix, FixContext
    from ember_ml.lint.flow import Flow


class Rule:
    """One rule: its code, what it says, why, examples that are also its tests, and its repair.

    ``bad`` holds snippets in which exactly the lines marked ``# bad`` (the last line if none is marked) are found;
    ``good`` holds look-alikes in which nothing is. Both are read after ``PRELUDE``, or as a pyproject.toml.
    """

    code: str = ""
    name: str = ""
    message: str = ""
    why: str = ""
    nodes: tuple[type[ast.AST], ...] = ()
    reads: str = "python"  # what the examples are: "python" or "toml"
    default: bool = True  # False: only when selected by name
    bad: tuple[str, ...] = ()
    good: tuple[str, ...] = ()

    def check(self, node: ast.AST, flow: Flow) -> None:
        """Look at one node and report to ``flow``."""

    def fix(self, node: ast.AST, context: FixContext) -> Fix | None:
        """Return the repair for a reported node, or ``None``."""
        return None


PRELUDE = (
    "from ember_ml import ops\nfrom ember_ml.nn import tensor\nfrom ember_ml.nn.tensor import Tensor, TensorLike\n"
)
