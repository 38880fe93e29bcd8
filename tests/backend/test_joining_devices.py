"""Numbers and new tensors join the device of the data, wherever tensors are made by default.

The default device is one without memory here, so that whatever is made there by mistake cannot be computed with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import devices


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pytest.importorskip("torch")
    before = ember_ml.get_backend()
    ember_ml.set_backend("torch")
    monkeypatch.setitem(devices._defaults, "torch", "meta")
    yield
    ember_ml.set_backend(before)


def here(values: Any) -> Any:
    return ops.array(values, device="cpu")


def test_loops_join_their_data() -> None:
    x = here([1.0, 2.0])
    assert ops.fori_loop(0, 3, lambda i, v: (v[0] + x, v[1] + 1), (x, 0))[0].tolist() == [4.0, 8.0]
    assert ops.fori_loop(0, here(3), lambda i, v: v + i, x).tolist() == [4.0, 5.0]
    steps, last = ops.while_loop(lambda n, v: ops.sum(v) < 20.0, lambda n, v: (n + 1, v * 2.0), (0, x))
    assert (steps.tolist(), last.tolist()) == (3, [8.0, 16.0])
    carry, outputs = ops.scan(lambda c, v: (c + v, c * v), 0.5, x)
    assert (carry.tolist(), outputs.tolist()) == (3.5, [0.5, 3.0])
    assert ops.map(lambda v: 1.0, x).tolist() == [1.0, 1.0]
    assert ops.scan(lambda c, v: (c, v), 0.5, here([])[:0])[1].device.type == "cpu"
    assert ops.vectorized_map(lambda v: ops.cond(v > 1.5, lambda: v, lambda: 0.0), x).tolist() == [0.0, 2.0]


def test_solvers_join_their_data() -> None:
    A, b = here([[4.0, 1.0], [1.0, 3.0]]), here([1.0, 2.0])
    for solve in (ops.conjugate_gradient, ops.gmres):
        found = ops.grad(lambda b, solve=solve: ops.sum(solve(A, b).x))(b)
        assert found.tolist() == pytest.approx([2 / 11, 3 / 11], rel=1e-5)
    assert ops.newton_root(lambda x: x * x - b, here([1.0, 1.0])).x.tolist() == pytest.approx([1.0, 2**0.5])
    assert ops.odeint(lambda t, y: -y * t, b, [0.0, 1.0]).tolist()[1] == pytest.approx([0.60653, 1.21306], rel=1e-4)
