"""All rules, in the order of their codes."""

from __future__ import annotations

import ast
from importlib import import_module

from ember_ml.lint.rules.base import PRELUDE, Rule
from ember_ml.lint.tables import words

_FILES = sorted(
    words(
        """
emb101_backend_import emb102_backend_internals emb103_dynamic_import emb104_old_name
emb201_backend_call emb202_conversion emb203_backend_name emb204_missing_conversion emb205_missing_annotation
emb301_scalar_cast emb302_item emb303_truth emb304_mixed_precision
emb401_operator emb402_native_method emb403_in_place emb404_comparison emb405_scalar_comparison emb406_builtin
emb501_isinstance emb502_hasattr emb503_backend_branch
emb601_native_dtype emb602_native_cast emb603_creation_dtype
emb701_native_random emb702_native_device
emb801_element_loop
emb900_unreadable emb901_stale_suppression emb902_bad_suppression emb903_bad_configuration
"""
    )
)

ALL: dict[str, Rule] = {}
for _file in _FILES:
    _rule = import_module(f"ember_ml.lint.rules.{_file}").RULE
    ALL[_rule.code] = _rule
DEFAULT = frozenset(code for code, rule in ALL.items() if rule.default)


def by_node(codes: frozenset[str]) -> dict[type[ast.AST], list[Rule]]:
    """Return the selected rules, by the node types they ask for."""
    table: dict[type[ast.AST], list[Rule]] = {}
    for code in sorted(codes):
        for node_type in ALL[code].nodes:
            table.setdefault(node_type, []).append(ALL[code])
    return table


__all__ = ["ALL", "DEFAULT", "PRELUDE", "Rule", "by_node"]
