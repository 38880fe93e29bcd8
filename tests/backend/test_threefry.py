"""The words: Random123's known answers, and the same ones whoever computes them."""

from __future__ import annotations

import _thread
import gc
import os
import sys
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

from ember_ml.backend.random.distributions import (
    EXPONENTIAL,
    GUMBEL,
    LAPLACE,
    NORMAL,
    TRUNCATED_NORMAL,
    UNIFORM,
    WORD,
    FloatVariate,
    Variate,
)
from ember_ml.backend.random.draw import host_draw
from ember_ml.backend.random.generator import Generator
from ember_ml.backend.random.threads import thread_limit
from ember_ml.backend.random.threefry import (
    CHUNK,
    LARGE_CHUNK,
    SHARE,
    aligned,
    block,
    fill,
    lane_block,
    lane_key,
    signed,
)
from tests.reference.randomness import KNOWN_ANSWERS, key_of, threefry, ulps_apart, words_of

COUNTS = [0, 1, 2, 3, 7, 1000, 2 * CHUNK - 1, 2 * CHUNK, 2 * CHUNK + 1, 5 * CHUNK + 3]


def _host_words(key: tuple[int, int], count: int) -> Any:
    out = np.empty(count, dtype=np.uint32)
    fill(out, key, np.copyto, wide=False)
    return out


def _lanes(key: tuple[int, int], counter: tuple[int, int], make: Any) -> list[int]:
    parts = lane_block(*(make(signed(word)) for word in (*key, *counter)))
    return [int(part) & 0xFFFFFFFF for part in parts]


@pytest.mark.parametrize(("key", "counter", "words"), KNOWN_ANSWERS)
def test_known_answers(key: tuple[int, int], counter: tuple[int, int], words: tuple[int, int]) -> None:
    assert threefry(key, counter) == words  # the reference of the other tests
    assert block(key, counter[0] << 32 | counter[1]) == words
    assert _lanes(key, counter, lambda word: np.array(word, dtype=np.int32)) == list(words)


def test_known_answers_on_torch() -> None:
    torch = pytest.importorskip("torch")
    for key, counter, words in KNOWN_ANSWERS:
        assert _lanes(key, counter, lambda word: torch.tensor(word, dtype=torch.int32)) == list(words)


def test_known_answers_on_mlx() -> None:
    mx = pytest.importorskip("mlx.core")
    for key, counter, words in KNOWN_ANSWERS:
        found = lane_block(*(mx.array(signed(word), dtype=mx.int32) for word in (*key, *counter)))
        assert [part.item() & 0xFFFFFFFF for part in found] == list(words)


def test_words_of_the_host_are_those_of_the_definition() -> None:
    for count in (0, 1, 2, 3, 64, 101):
        assert _host_words(key_of(7), count).tolist() == words_of(7, count)


def test_pieces_join_where_they_should() -> None:
    for count in COUNTS:
        blocks = (count + 1) // 2
        words = _host_words((1, 2), count)
        for number in {0, CHUNK - 1, CHUNK, blocks - 1} & set(range(blocks)):
            first, second = threefry((1, 2), (number, blocks + number))
            assert words[number] == first
            assert blocks + number >= count or words[blocks + number] == second


@pytest.mark.parametrize("count", COUNTS)
def test_words_of_torch_are_those_of_the_host(count: int) -> None:
    torch = pytest.importorskip("torch")
    from ember_ml.backend.torch import random as draws

    for key in ((0, 0), (0xFFFFFFFF, 0x80000000)):
        want = host_draw(WORD, key, count)
        assert draws.draw(WORD, key, (count,), "cpu").tolist() == want.tolist()
        native = torch.tensor([signed(word) for word in key], dtype=torch.int32)
        assert draws.draw(WORD, native, (count,), "cpu").tolist() == want.tolist()


@pytest.mark.parametrize("count", COUNTS)
def test_words_of_mlx_are_those_of_the_host(count: int) -> None:
    mx = pytest.importorskip("mlx.core")
    from ember_ml.backend.mlx import random as draws

    for key in ((0, 0), (0xFFFFFFFF, 0x80000000)):
        want = host_draw(WORD, key, count)
        assert draws.draw(WORD, key, (count,), "cpu").tolist() == want.tolist()
        native = mx.array([signed(word) for word in key], dtype=mx.int32)
        assert draws.draw(WORD, native, (count,), "cpu").tolist() == want.tolist()
        blocks = (count + 1) // 2
        by_ops = mx.view(draws.words_by_ops(native, blocks), mx.uint32).tolist() if blocks else []
        assert by_ops[:count] == want.tolist()


def test_mlx_does_without_its_split(monkeypatch: pytest.MonkeyPatch) -> None:
    mx = pytest.importorskip("mlx.core")
    from ember_ml.backend.mlx import random as draws

    assert draws._splits_as_known()
    monkeypatch.setattr(mx.random, "split", lambda key, number: mx.zeros((number, 2), dtype=mx.uint32))
    draws._splits_as_known.cache_clear()
    try:
        assert not draws._splits_as_known()
        assert draws.draw(WORD, (3, 4), (9,), "cpu").tolist() == host_draw(WORD, (3, 4), 9).tolist()
    finally:
        draws._splits_as_known.cache_clear()


@pytest.mark.parametrize("kind", [UNIFORM, NORMAL, TRUNCATED_NORMAL, EXPONENTIAL, LAPLACE, GUMBEL])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_computes_the_formulas_of_the_host(kind: FloatVariate, dtype: str) -> None:
    pytest.importorskip("torch")
    from ember_ml.backend.torch import random as draws

    variate: Variate = getattr(kind, dtype)
    got, want = draws.draw(variate, (5, 6), (10_001,), "cpu").numpy(), host_draw(variate, (5, 6), 10_001)
    # the square root of float64 is wrong in the last bit on some CPUs; eager draws come from the host
    assert ulps_apart(got, want) <= (5 if dtype == "float64" and "normal" in variate.name else 0)


@pytest.mark.parametrize("counter", [0, 5, 2**31 - 1, 2**32 - 2, 2**32 - 1, 2**63 + 2**32 - 1])
def test_traced_generator_goes_on_as_the_generator_itself(counter: int) -> None:
    generator = Generator.from_state({"key": [1, 0xFFFFFFFF], "counter": counter, "native": False})
    words = generator.words()
    state = [np.array(signed(word), dtype=np.int32)[None] for word in words]
    for number in range(3):
        want = list(generator.next_key())
        key = lane_key((state[0], state[1], state[2], state[3]), number, lambda x: x.astype(np.int32))
        assert [int(word[0]) & 0xFFFFFFFF for word in key] == want
        for name in ("numpy", "torch", "mlx"):
            assert _derived(name, words, number) == want


def _derived(name: str, words: tuple[int, ...], number: int) -> list[int]:
    if name == "numpy":
        from ember_ml.backend.numpy import random as draws

        return list(draws.derive(np.array(words, dtype=np.uint32), number))
    if name == "torch":
        torch = pytest.importorskip("torch")
        from ember_ml.backend.torch import random as draws

        forms: list[Any] = [torch.tensor(words, dtype=torch.int64), torch.tensor(words, dtype=torch.uint32)]
    else:
        mx = pytest.importorskip("mlx.core")
        from ember_ml.backend.mlx import random as draws

        forms = [mx.array(words, dtype=mx.uint32), mx.array(words, dtype=mx.int64)]
    found = [[int(word) & 0xFFFFFFFF for word in draws.derive(form, number).tolist()] for form in forms]
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("kind", [UNIFORM, NORMAL, EXPONENTIAL])
@pytest.mark.parametrize("count", [2 * SHARE, 4 * SHARE - 1, 4 * SHARE, 6 * LARGE_CHUNK + 5])
def test_any_number_of_threads_draws_the_same(kind: FloatVariate, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr("ember_ml.backend.random.threefry.thread_limit", lambda threads=threads: threads)
        found.append(host_draw(kind.float32, (3, 4), count))
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_an_error_in_a_thread_is_raised_and_no_thread_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ember_ml.backend.random.threefry.thread_limit", lambda: 2)
    before, here, callers = set(sys._current_frames()), threading.get_ident(), set()

    def refuse(piece: np.ndarray, words: np.ndarray) -> None:
        callers.add(threading.get_ident())
        if threading.get_ident() != here:
            raise ValueError("refused")
        while len(callers) < 2:  # so that the other thread gets its piece
            time.sleep(0.001)

    with pytest.raises(ValueError, match="refused"):
        fill(np.empty(4 * SHARE, dtype=np.uint32), (1, 2), refuse, False)
    assert len(callers) == 2
    assert set(sys._current_frames()) == before


def test_draws_go_on_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    want = host_draw(WORD, (1, 2), 4 * SHARE)
    monkeypatch.setattr("ember_ml.backend.random.threefry.thread_limit", lambda: 2)

    def fail(*arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", fail)
    assert np.array_equal(host_draw(WORD, (1, 2), 4 * SHARE), want)


@pytest.mark.parametrize(("setting", "limit"), [("1", 1), ("3", 3), ("2,4", 2), ("64", 4)])
def test_threads_are_limited_by_the_environment(setting: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert thread_limit.__wrapped__() == limit


@pytest.mark.parametrize("setting", [None, "", "0", "many"])
def test_without_a_limit_threads_are_as_many_as_cores(setting: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if setting is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", setting)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert thread_limit.__wrapped__() == 3


def test_jax_has_a_draw_in_the_memory_of_the_host_as_long_as_it_needs_it() -> None:
    jax = pytest.importorskip("jax")
    from ember_ml.backend.jax.host_transfer import adopt

    drawn = aligned(1000, np.dtype(np.float32))
    drawn[:] = 2.0
    memory, place = weakref.ref(drawn.base), drawn.ctypes.data
    adopted = adopt(drawn, "cpu")
    del drawn
    gc.collect()
    assert adopted.unsafe_buffer_pointer() == place
    assert memory() is not None
    given_away = jax.jit(lambda x: x + 1.0, donate_argnums=0)(adopted)
    assert adopted.is_deleted()
    del adopted
    gc.collect()
    assert memory() is None
    assert given_away.tolist() == [3.0] * 1000
