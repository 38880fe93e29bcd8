"""Names of other libraries: the table leads to public names, and the errors of missing names use it."""

from __future__ import annotations

import pickle
import re
from functools import reduce

import pytest

import ember_ml
from ember_ml import nn, ops, training
from ember_ml.core.other_names import LIBRARIES, Row, explain, rows
from ember_ml.errors import UnknownBackend

ROWS = [row for library in LIBRARIES for row in rows(library)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.theirs)
def test_every_row_leads_to_a_public_name(row: Row) -> None:
    names = row.ours.removeprefix("ember_ml").strip(".").split(".")
    parents = [reduce(getattr, filter(None, names[:count]), ember_ml) for count in range(len(names))]
    for parent, name in zip(parents, filter(None, names), strict=False):
        assert name in dir(parent)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.theirs)
def test_names_in_notes_exist(row: Row) -> None:
    for path in re.findall(r"\b((?:ops|nn|training|ember_ml)(?:\.\w+)+)", row.note):
        assert reduce(getattr, path.removeprefix("ember_ml.").split("."), ember_ml) is not None


def test_no_name_has_two_rows() -> None:
    for library in LIBRARIES:
        names = [row.theirs for row in rows(library)]
        assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(
    ("package", "name", "said"),
    [
        (nn, "Dense", "keras.layers.Dense is nn.Linear here"),
        (ops, "cat", "torch.cat is ops.concatenate here"),
        (nn, "BatchNorm2d", "torch.nn.BatchNorm2d is nn.BatchNorm here"),
        (nn, "CrossEntropyLoss", "is training.losses.SparseCategoricalCrossentropy here"),
        (nn, "functional", "torch.nn.functional is ember_ml.ops here"),
        (ember_ml, "jit", "is ember_ml.compile here"),
        (training, "Adam", "it is training.optimizers.Adam"),
        (ember_ml, "float32", "it is ops.float32"),
    ],
)
def test_a_missing_name_is_explained(package: object, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(said)) as error:
        getattr(package, name)
    assert error.value.name == name  # Python's own "Did you mean" needs it
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_an_unknown_name_has_no_hint() -> None:
    assert explain("ember_ml.nn", "Nonsense") == ""
    with pytest.raises(AttributeError, match=r"^module 'ember_ml.ops' has no attribute 'nonsense'$"):
        ops.nonsense  # noqa: B018
    assert not hasattr(nn, "nonsense")


@pytest.mark.parametrize(
    ("written", "meant"), [("pytorch", "torch"), ("PyTorch", "torch"), ("numpi", "numpy"), ("mx", "mlx")]
)
def test_a_misspelt_backend_is_explained(written: str, meant: str) -> None:
    with pytest.raises(UnknownBackend, match=f"did you mean '{meant}'"):
        ember_ml.set_backend(written)
    with pytest.raises(UnknownBackend, match="there is no backend 'fortran'; the backends are numpy"):
        ember_ml.set_backend("fortran")
