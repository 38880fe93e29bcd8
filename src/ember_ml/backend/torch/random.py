"""Random numbers on PyTorch: by torch in compiled functions and on CUDA, otherwise on the host.

Draws without a seed in a compiled function get their key when it runs, from a custom operator; the stream continues
from call to call, as in eager code. The operator claims to write to its first argument: that keeps the compiler from
removing, merging or reordering calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ember_ml.backend.random import generator, parameters
from ember_ml.backend.random.distributions import Variate
from ember_ml.backend.random.generator import Key, SeedLike, TracedGenerator
from ember_ml.backend.random.threefry import lane_block, lane_key, signed
from ember_ml.backend.torch.host_transfer import from_host
from ember_ml.core.dtypes import EmberDType

_library = torch.library.Library("ember_ml", "FRAGMENT")
_library.define("next_key(Tensor(a!) order, int generator) -> Tensor")
_library.define("key(int first, int second) -> Tensor")
_order = torch.zeros(1)


def _next_key(order: torch.Tensor, number: int) -> torch.Tensor:
    """Return the next key of the generator with that number; 0 is the current one for draws without a seed."""
    source = generator.generators[number] if number else generator.lent() or generator.default_generator()
    return _key(*source.next_key())


def _key(first: int, second: int) -> torch.Tensor:
    return torch.tensor([signed(first), signed(second)], dtype=torch.int32)


def _fake_key(*arguments: Any) -> torch.Tensor:
    return torch.empty(2, dtype=torch.int32)


for _name, _body in (("next_key", _next_key), ("key", _key)):
    _library.impl(_name, _body, "CompositeExplicitAutograd")
    torch.library.register_fake(f"ember_ml::{_name}", _fake_key, lib=_library)
_ask = torch.ops.ember_ml.next_key.default
_known = torch.ops.ember_ml.key.default


def next_key(seed: SeedLike | None) -> tuple[Key, bool]:
    return (_traced_key(seed), False) if torch.compiler.is_compiling() else generator.next_key(seed)


def _traced_key(seed: SeedLike | None) -> Key:
    source = generator.lent() if seed is None else seed
    if isinstance(source, TracedGenerator):
        return source.next_key()
    if seed is None or source is None:
        return _ask(_order, 0)
    if isinstance(source, generator.Generator):
        return _ask(_order, source.number)
    # torch 2.13: the compiler adds constants to the counters in integers that do not wrap
    return _known(*generator.first_key(source))


def derive(words: torch.Tensor, number: int) -> torch.Tensor:
    words = words.view(torch.int32) if words.dtype is torch.uint32 else words.to(torch.int32)
    state = (words[0], words[1], words[2], words[3])
    return torch.stack(lane_key(state, number, lambda x: x.to(torch.int32), _LANES.keep))


def takes(variate: Variate, key: Key, device: str | None) -> bool:
    return torch.compiler.is_compiling() or type(key) is not tuple or (device or "").startswith("cuda")


class _Lanes:
    """PyTorch's functions for the formulas."""

    def cast(self, x: torch.Tensor, dtype: EmberDType) -> torch.Tensor:
        return x.to(getattr(torch, dtype.name))  # torch 2.6: cannot trace a table of dtypes

    def view(self, x: torch.Tensor, dtype: EmberDType) -> torch.Tensor:
        return x.view(getattr(torch, dtype.name))

    def where(self, condition: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.where(condition, x, y)

    def otherwise(
        self,
        condition: torch.Tensor,
        x: torch.Tensor,
        compute: Callable[[torch.Tensor], torch.Tensor],
        source: torch.Tensor,
    ) -> torch.Tensor:
        return self.where(condition, x, compute(source))

    def keep(self, x: torch.Tensor) -> torch.Tensor:
        # torch 2.13: as_strided makes the compiler materialize a value that it would compute again for each use
        return torch.as_strided(x, x.shape, x.stride()) if torch.compiler.is_compiling() else x

    def sqrt(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype is torch.float64 or x.device.type == "mps":  # it has no float64
            return torch.sqrt(x)
        return torch.sqrt(x.to(torch.float64)).to(x.dtype)  # torch 2.11 on CUDA: the last bit of float32 may be wrong


_LANES = _Lanes()


def draw(variate: Variate, key: Key, shape: tuple[int, ...], device: str | None) -> torch.Tensor:
    count = math.prod(shape)
    if variate.wide:
        return variate.formula(_LANES, *_words(key, count, device)).reshape(shape)
    blocks = (count + 1) // 2
    first, second = _words(key, blocks, device)
    halves = [variate.formula(_LANES, first), variate.formula(_LANES, second[: count - blocks])]
    return torch.cat(halves).reshape(shape)


def _words(key: Key, blocks: int, device: str | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the first and the second words of so many blocks."""
    if type(key) is tuple:
        first, second = signed(key[0]), signed(key[1])
    else:
        key = key.to(device)
        first, second = key[0], key[1]
    numbers = torch.arange(blocks, dtype=torch.int64, device=device).to(torch.int32)
    # torch 2.13: with a variable shape, the compiler turns the sum of numbers and blocks into floats
    others = torch.arange(blocks, 2 * blocks, dtype=torch.int64, device=device).to(torch.int32)
    return lane_block(first, second, numbers, others, _LANES.keep)


adopt = from_host


def constant(compute: Callable[..., Any], device: str | None, *data: Any) -> torch.Tensor:
    if not torch.compiler.is_compiling():
        return from_host(compute(*data), device)
    if any(hasattr(value, "shape") for value in data):
        raise ValueError("in a compiled function probabilities are plain numbers; of a tensor, use random_categorical")
    numbers, *rest = data
    counts, names = [x for x in rest if isinstance(x, int)], [x for x in rest if isinstance(x, str)]
    # torch 2.13: a function may keep the result of a call as a constant only once, hence an operator
    found = torch.ops.ember_ml.constant(compute.__name__, [float(number) for number in numbers], counts, names)
    return found if device is None else found.to(device)


def _compute_constant(compute: str, numbers: list[float], counts: list[int], names: list[str]) -> torch.Tensor:
    """Return what the function of that name computes of the numbers and the rest."""
    return from_host(getattr(parameters, compute)(numbers, *counts, *names), None, copy=True)


def _fake_constant(*data: Any) -> torch.Tensor:
    return torch.empty_like(_compute_constant(*data))


_library.define("constant(str compute, float[] numbers, int[] counts, str[] names) -> Tensor")
_library.impl("constant", _compute_constant, "CompositeExplicitAutograd")
torch.library.register_fake("ember_ml::constant", _fake_constant, lib=_library)


def order(words: torch.Tensor) -> torch.Tensor:
    return torch.argsort(words, stable=True)


def _generator(seed: int, device: str | None) -> torch.Generator:
    return torch.Generator(device or "cpu").manual_seed(seed)


def _uniform(seed: int, shape: tuple[int, ...], dtype: torch.dtype, device: str | None) -> torch.Tensor:
    return torch.rand(shape, generator=_generator(seed, device), dtype=dtype, device=device)


def _normal(seed: int, shape: tuple[int, ...], dtype: torch.dtype, device: str | None) -> torch.Tensor:
    return torch.randn(shape, generator=_generator(seed, device), dtype=dtype, device=device)


def _exponential(seed: int, shape: tuple[int, ...], dtype: torch.dtype, device: str | None) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=device).exponential_(generator=_generator(seed, device))


def _bernoulli(seed: int, shape: tuple[int, ...], dtype: torch.dtype, device: str | None, p: float) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=device).bernoulli_(p, generator=_generator(seed, device))


_NATIVE = {"uniform": _uniform, "normal": _normal, "exponential": _exponential, "bernoulli": _bernoulli}


def native(variate: Variate) -> Callable[..., Any] | None:
    return _NATIVE.get(variate.name)
