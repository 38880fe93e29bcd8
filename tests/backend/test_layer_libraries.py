"""Convolutions, pooling and attention inside PyTorch and MLX: compiled functions, and the ways of other devices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend.common.convolution import convolution


@pytest.fixture(params=["torch", "mlx"])
def compiled(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """The library's compiler, which must take a function whole."""
    library = pytest.importorskip("torch" if request.param == "torch" else "mlx.core")
    before = ember_ml.get_backend()
    ember_ml.set_backend(request.param)
    how: dict[str, Any] = {"backend": "eager", "fullgraph": True} if request.param == "torch" else {}
    yield lambda f: library.compile(f, **how)
    ember_ml.set_backend(before)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "conv": lambda x, w: ops.conv(x, w, 2, "same"),
    "conv_transpose": lambda x, w: ops.conv_transpose(ops.conv(x, w), w, 2, "same"),
    "depthwise_conv": lambda x, w: ops.depthwise_conv(x, w, padding="same"),
    "separable_conv": lambda x, w: ops.separable_conv(x, w, ops.ones((1, 1, 24, 3))),
    "max_pool": lambda x, w: ops.max_pool(x, 3, 2, "same"),
    "average_pool": lambda x, w: ops.average_pool(x, 3, 2, "same"),
    "average_pool, whole": lambda x, w: ops.average_pool(x, (20, 20)),
    "adaptive_max_pool": lambda x, w: ops.adaptive_max_pool(x, 3),
    "adaptive_average_pool": lambda x, w: ops.adaptive_average_pool(x, 3),
    "attention": lambda x, w: ops.dot_product_attention(x, x, x, is_causal=True),
    "attention, mask": lambda x, w: ops.dot_product_attention(
        x[:, :3], x, x, bias=x[0, :3, :, 0], mask=ops.greater(x[0, :3, :, 1], 0.0), is_causal=True
    ),
    "attention, groups": lambda x, w: ops.dot_product_attention(x, x[:, :, ::2], x[:, :, 1::2]),
    "rotary_embedding": lambda x, w: ops.rotary_embedding(x, offset=3),
    "rotary_embedding, positions": lambda x, w: ops.rotary_embedding(x, ops.arange(5, 25), interleaved=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions_give_what_eager_ones_give(compiled: Callable[..., Any], name: str) -> None:
    rng = np.random.default_rng(0)
    x, w = (ops.asarray(rng.normal(size=s).astype(np.float32)) for s in ((2, 20, 20, 4), (3, 3, 4, 6)))
    f = FUNCTIONS[name]
    want, got = (ops.to_numpy(function(x, w)) for function in (f, compiled(f)))
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["conv", "average_pool", "attention, groups", "rotary_embedding, positions"])
def test_sizes_that_pytorch_traces_as_symbols(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    ember_ml.set_backend("torch")
    try:
        grown = torch.compile(FUNCTIONS[name], backend="eager", fullgraph=True, dynamic=True)
        x, w = (torch.randn(shape, device=ops.get_default_device()) for shape in ((2, 20, 20, 4), (3, 3, 4, 6)))
        torch.testing.assert_close(grown(x, w), FUNCTIONS[name](x, w))
    finally:
        ember_ml.set_backend("numpy")


def test_mlx_own_convolution_gets_the_right_arguments() -> None:
    """It is what runs on the GPU; on the CPU it is used for the plain case alone."""
    mx: Any = pytest.importorskip("mlx.core")
    from ember_ml.backend.common.convolution import windowed_convolution
    from ember_ml.backend.mlx.bodies.convolutions import _native

    rng = np.random.default_rng(0)
    for dimensions, stride, dilation, groups in itertools.product((1, 2, 3), (1, 2), (1, 2), (1, 2)):
        if dimensions == 3 and groups > 1:
            continue  # MLX has none
        x = mx.array(rng.normal(size=(2, *(7, 6, 5)[:dimensions], 4)).astype(np.float32))
        kernel = mx.array(rng.normal(size=(*(3, 2, 2)[:dimensions], 4 // groups, 6)).astype(np.float32))
        padding = [(1, 2), (2, 0), (0, 1)][:dimensions]
        plan = convolution(x.shape, kernel.shape, stride, padding, "channels_last", dilation)
        own, ours = _native(x, kernel, plan), windowed_convolution(mx, x, kernel, plan)
        np.testing.assert_allclose(np.array(own), np.array(ours), rtol=1e-5, atol=1e-5)


def test_pytorch_convolutions_keep_single_precision_on_nvidia_gpus() -> None:
    torch: Any = pytest.importorskip("torch")
    ember_ml.backend.load("torch")
    assert torch.backends.cudnn.allow_tf32 is False
    if torch.cuda.is_available():
        torch.manual_seed(0)
        x, kernel = torch.rand(2, 32, 32, 64, dtype=torch.float64), torch.rand(3, 3, 64, 64, dtype=torch.float64)
        with ember_ml.use_backend("torch"):
            want = ops.conv(x, kernel)
            got = ops.conv(x.float().cuda(), kernel.float().cuda())
        # seen on an H200: 1.7e-6, and 6.1e-5 by TF32, which has 10 bits of each factor
        assert ((got.cpu() - want) / want).abs().max() < 3e-6


def test_rotation_is_that_of_mlx() -> None:
    mx: Any = pytest.importorskip("mlx.core")
    x = mx.array(np.random.default_rng(0).normal(size=(2, 3, 9, 16)).astype(np.float32))
    with ember_ml.use_backend("mlx"):
        for interleaved in (False, True):
            ours = ops.rotary_embedding(x, axis=2, base=500.0, scale=0.5, offset=3, interleaved=interleaved)
            theirs = mx.fast.rope(x, 16, traditional=interleaved, base=500.0, scale=0.5, offset=3)
            np.testing.assert_allclose(np.array(ours), np.array(theirs), atol=2e-6)


@pytest.mark.parametrize("axis", [-1, 1])
def test_pytorch_own_batch_normalization_gets_the_right_arguments(axis: int) -> None:
    """It is what runs on the GPU."""
    torch: Any = pytest.importorskip("torch")
    from ember_ml.backend.torch.bodies.normalizations import _moments_by_kernel, moments_normalization

    torch.manual_seed(0)
    x = torch.randn(3, 4, 5, 6, dtype=torch.float64)
    size = x.shape[axis]
    offset, scale = torch.randn(size, dtype=torch.float64), torch.randn(size, dtype=torch.float64)
    for parameters in ((offset, scale), (None, None)):
        want = moments_normalization(x, axis, *parameters, 1e-3)
        for got, expected in zip(_moments_by_kernel(x, axis % 4, *parameters, 1e-3), want, strict=True):
            torch.testing.assert_close(got, expected)

    def loss(function: Callable[..., Any], place: int) -> Callable[[Any], Any]:
        return lambda x: function(x, place, offset, scale, 1e-3)[0].square().mul(x.cos()).sum()

    own, ours = loss(_moments_by_kernel, axis % 4), loss(moments_normalization, axis)
    torch.testing.assert_close(torch.func.grad(own)(x), torch.func.grad(ours)(x))


def test_pytorch_normalizes_many_rows_to_the_second_derivative() -> None:
    torch: Any = pytest.importorskip("torch")
    from ember_ml.backend.torch.bodies.normalizations import _ManyRows

    torch.manual_seed(0)
    rows = torch.randn(16, 2, dtype=torch.float64, requires_grad=True)
    offset, scale = (torch.randn(2, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def normalize(rows: Any, offset: Any, scale: Any) -> Any:
        return _ManyRows.apply(rows, offset, scale, 1e-3)[0]

    assert torch.autograd.gradcheck(normalize, (rows, offset, scale))
    assert torch.autograd.gradgradcheck(normalize, (rows, offset, scale))


def test_pytorch_updates_parameters_with_the_channels_last_in_memory() -> None:
    """The kernels of Adam read memory in its own order, whatever the strides."""
    torch: Any = pytest.importorskip("torch")
    from ember_ml.backend.torch.optimizer_kernels import kernels

    generator = torch.Generator().manual_seed(0)
    numbers = [torch.rand(4, 3, 2, 2, generator=generator) for _ in range(4)]
    settings = {"rate": 0.1, "factor": 0.1, "scaled_epsilon": 1e-8, "step": 2, "beta1": 0.9, "beta2": 0.99}
    settings |= {"epsilon": 1e-8, "weight_decay": 0.0, "is_decoupled": False}
    p, g, m, v = (x.double() for x in numbers)
    first, second = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
    wanted = p - 0.1 * (first / (1 - 0.9**2)) / ((second / (1 - 0.99**2)).sqrt() + 1e-8)
    for orders in itertools.product((torch.contiguous_format, torch.channels_last), repeat=4):
        columns = [[x.clone(memory_format=order)] for x, order in zip(numbers, orders, strict=True)]
        found = kernels["adam"](*columns, **settings)
        for (got,), want in zip(found, (wanted, first, second), strict=True):
            torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=1e-6)
