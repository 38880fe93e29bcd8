"""What PyTorch records of calls that nobody differentiates, and how batches get to its devices."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.core.trees import flatten

torch: Any = pytest.importorskip("torch")
gradients: Any = ember_ml.backend.load("torch").gradients
transfer: Any = pytest.importorskip("ember_ml.backend.torch.host_transfer")


def test_unrecorded_calls_make_tensors_that_can_be_trained() -> None:
    x = torch.ones(3, requires_grad=True)
    with gradients.unrecorded():
        y = (x * 2.0)[1:]
        assert not y.requires_grad
        z = torch.zeros(2)
        z[0] = 5.0
    # as those of inference_mode cannot
    y.requires_grad_()
    (y * y + z).sum().backward()
    assert y.grad.tolist() == [4.0, 4.0]
    assert x.grad is None
    assert (x * 2.0).requires_grad


def test_recording_goes_on_after_an_error_in_unrecorded_calls() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ZeroDivisionError), gradients.unrecorded():
        1 / 0  # noqa: B018
    y = x[:1]
    y.exp().sum().backward()
    assert x.grad.tolist() == pytest.approx([np.e, 0.0])
    with pytest.raises(RuntimeError, match="in-place"):
        x.detach().requires_grad_()[:1].zero_()  # and so does the check of views


def test_unrecorded_calls_inside_transforms_are_differentiated() -> None:
    def cube(x: Any) -> Any:
        with gradients.unrecorded():
            return x * x * x

    x = torch.tensor([1.0, 2.0])
    assert torch.func.grad(lambda x: cube(x).sum())(x).tolist() == [3.0, 12.0]
    assert torch.func.vmap(cube)(x).tolist() == [1.0, 8.0]


def test_a_model_is_trained_as_before_after_it_has_generated() -> None:
    with ember_ml.use_backend("torch"):
        ops.random.seed(0)
        model = nn.blocks.LanguageModel(7, 8, 1, 2, length=6)
        tokens = ops.array([[1, 2, 3]])

        def slopes() -> list[list[float]]:
            found = ops.grad(lambda model: ops.sum(ops.square(model(tokens))))(model)
            return [ops.to_numpy(x).ravel().tolist() for x in flatten(found)[0]]

        before = slopes()
        nn.generate(model, tokens, 2, seed=0)
        assert slopes() == before
        assert any(any(x) for x in before)


class _Tensor:
    """Tells how it was sent, and whether from pinned memory."""

    def __init__(self, nbytes: int, is_pinned: bool = False) -> None:
        self.nbytes, self.is_pinned = nbytes, is_pinned

    def pin_memory(self) -> _Tensor:
        return _Tensor(self.nbytes, True)

    def to(self, device: str, non_blocking: bool = False) -> tuple[str, bool, bool]:
        return device, self.is_pinned, non_blocking


def test_batches_go_to_cuda_through_pinned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    most = transfer._MOST_PINNED
    assert transfer._send(_Tensor(most), "cuda:1") == ("cuda:1", True, True)
    # neither whole models, nor what goes elsewhere, nor inside of compiled functions
    assert transfer._send(_Tensor(most + 1), "cuda") == ("cuda", False, False)
    assert transfer._send(_Tensor(most), "mps") == ("mps", False, False)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert transfer._send(_Tensor(most), "cuda") == ("cuda", False, False)


def test_arrays_are_sent_only_to_other_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_send", lambda tensor, device: (tensor.tolist(), device))
    array = np.array([1.0, 2.0], np.float32)
    assert transfer.from_host(array, "cuda") == ([1.0, 2.0], "cuda")
    for device in (None, "cpu"):
        assert transfer.from_host(array, device).tolist() == [1.0, 2.0]


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # by forward mode itself
def test_a_product_with_a_large_weight_is_seen_by_everything_that_pytorch_does_to_products() -> None:
    weight, x, bias = torch.randn(512, 256), torch.randn(1, 256), torch.randn(512)
    with ember_ml.use_backend("torch"):
        for leaf in (x, weight, bias):
            leaf.requires_grad_()
            ops.linear(x, weight, bias).sum().backward()
            assert leaf.grad is not None
            leaf.requires_grad_(False)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
            _, tangent = torch.autograd.forward_ad.unpack_dual(ops.linear(dual, weight, bias))
        torch.testing.assert_close(tangent[0], weight.sum(1), atol=1e-4, rtol=1e-4)
        with torch.autocast("cpu", torch.bfloat16):
            assert ops.linear(x, weight, bias).dtype is torch.bfloat16
        with torch.autograd.set_grad_enabled(False):
            want = (x.double() @ weight.double().T + bias.double()).float()
            torch.testing.assert_close(ops.linear(x, weight, bias), want, atol=1e-4, rtol=0)


class _Wrapped(torch.Tensor):
    """A weight that is stored in another way, as quantizing packages have it: it knows ``linear`` alone."""

    @staticmethod
    def __new__(cls: Any, stored: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, stored.shape, dtype=torch.float32)

    def __init__(self, stored: Any) -> None:
        self.stored = stored

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.nn.functional.linear:
            return function(args[0], args[1].stored.float(), *args[2:])
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(function)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta", "ignore:.torch.jit.trace. is deprecated")
def test_large_weights_of_every_kind_that_pytorch_multiplies_by() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    weight, x, bias = torch.randn(512, 256), torch.randn(3, 256), torch.randn(512)
    want = torch.nn.functional.linear(x, weight, bias)
    with ember_ml.use_backend("torch"):
        torch.testing.assert_close(ops.linear(x, weight.to_sparse_csr(), bias), want, atol=1e-4, rtol=1e-4)
        in_halves = torch.nn.functional.linear(x, weight.half().float(), bias)
        torch.testing.assert_close(ops.linear(x, _Wrapped(weight.half()), bias), in_halves)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", torch.jit.TracerWarning)
            traced = torch.jit.trace(lambda x: ops.linear(x, weight, bias), x)
        torch.testing.assert_close(traced(x[:1]), want[:1], atol=1e-4, rtol=1e-4)
        with FlopCounterMode(display=False) as counter:
            ops.linear(x, weight, bias)
        assert counter.get_total_flops() == 2 * 3 * 256 * 512
