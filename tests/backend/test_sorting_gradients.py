"""Order statistics inside the libraries' own differentiation: sorting elsewhere, or by keys, must not cut the graph."""

from collections.abc import Callable
from typing import Any

import pytest

import ember_ml
from ember_ml import ops

_ELEMENTS = [float((i * 577) % 2003) for i in range(2003)]

OPS: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: ops.get_item(ops.sort(x), -1),
    "top_k": lambda x: ops.get_item(ops.top_k(x, 3)[0], 0),
    "median": ops.median,
    "nanmedian": ops.nanmedian,
    "quantile": lambda x: ops.get_item(ops.quantile(x, [0.5, 1.0]), 0),
    "argmax": lambda x: ops.get_item(ops.take_along_axis(x, ops.argmax(x, keepdims=True), axis=0), 0),
}
# the place of the largest element, and of the middle one
_PLACES = {"sort": 2002.0, "top_k": 2002.0, "argmax": 2002.0, "median": 1001.0, "nanmedian": 1001.0, "quantile": 1001.0}


@pytest.fixture(params=["torch", "mlx"])
def library(request: pytest.FixtureRequest) -> Any:
    name = "torch" if request.param == "torch" else "mlx.core"
    found = pytest.importorskip(name)
    before = ember_ml.get_backend()
    ember_ml.set_backend(request.param)
    yield found
    ember_ml.set_backend(before)


@pytest.mark.parametrize("name", sorted(OPS))
def test_gradient_is_one_where_the_element_was(library: Any, name: str) -> None:
    op = OPS[name]
    if library.__name__ == "torch":
        x = library.tensor(_ELEMENTS, requires_grad=True)
        op(x).backward()
        gradient = x.grad.tolist()
    else:
        gradient = library.grad(op)(library.array(_ELEMENTS)).tolist()
    assert gradient == [1.0 if value == _PLACES[name] else 0.0 for value in _ELEMENTS]


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # which torch itself uses to start with
@pytest.mark.parametrize("name", ["sort", "median", "quantile"])
def test_directional_derivatives_pass_through_on_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor(_ELEMENTS)
    with ember_ml.use_backend("torch"):
        value, slope = torch.func.jvp(OPS[name], (x,), (2 * x,))
    assert (value.item(), slope.item()) == (_PLACES[name], 2 * _PLACES[name])
