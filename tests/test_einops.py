"""einops takes EmberTensor on every backend."""

import subprocess
import sys

import pytest

from ember_ml.nn import tensor
from ember_ml.nn.tensor import EmberTensor

einops = pytest.importorskip("einops")


def test_rearrange_reduce_repeat(backend: str) -> None:
    x = tensor.reshape(tensor.arange(24.0), (2, 3, 4))
    flat = einops.rearrange(x, "a b c -> c (a b)")
    assert type(flat) is EmberTensor
    assert flat.backend == backend
    assert flat.shape == (4, 6)
    assert flat.tolist()[1] == [1.0, 5.0, 9.0, 13.0, 17.0, 21.0]
    assert einops.reduce(x, "a b c -> b", "sum").tolist() == [60.0, 92.0, 124.0]
    assert einops.reduce(x, "a b c -> a", "max").tolist() == [11.0, 23.0]
    assert einops.reduce(x, "a b c -> ", "mean").item() == 11.5
    assert einops.repeat(x[0, 0], "c -> c n", n=2).tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]


def test_lists_pack_and_einsum(backend: str) -> None:
    x, y = tensor.ones((2, 3)), tensor.zeros((2, 3))
    assert einops.rearrange([x, y], "n a b -> a n b").shape == (2, 2, 3)
    packed, shapes = einops.pack([x, tensor.zeros((2,))], "a *")
    assert packed.shape == (2, 4)
    assert [part.shape for part in einops.unpack(packed, shapes, "a *")] == [(2, 3), (2,)]
    assert einops.einsum(x, x, "a b, c b -> a c").tolist() == [[3.0, 3.0], [3.0, 3.0]]


@pytest.mark.parametrize("order", ["import einops, ember_ml", "import ember_ml, einops"])
def test_either_may_be_imported_first(order: str) -> None:
    code = f"{order}\nprint(einops.rearrange(ember_ml.nn.tensor.ones((2, 3)), 'a b -> b a').shape)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(3, 2)"
