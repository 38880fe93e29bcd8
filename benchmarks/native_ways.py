"""The ways in which each library itself can do the large operations, with the guarantees that Ember ML gives.

Sorting is stable, out-of-range indices raise, the median is the mean of the two middle values. Where a library has
several ways, each sensible one is listed; the benchmark takes the fastest. On the host, through NumPy, counts for MLX
only where the shape of the result depends on values, so that MLX has no way of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["WAYS"]

Way = Callable[..., Any]


def _numpy() -> dict[str, dict[str, Way]]:
    import numpy as np

    def add_at(values: Any, indices: Any, size: int) -> Any:
        if indices.min() < 0:  # add.at counts negative cells from the end; too large ones it refuses itself
            raise IndexError
        result = np.zeros(size, values.dtype)
        np.add.at(result, indices, values)
        return result

    return {
        "scatter": {
            "bincount": lambda v, i, n: np.bincount(i, v, n).astype(v.dtype),
            "add.at": add_at,
        },
        "sort": {"sort": lambda x: np.sort(x, kind="stable")},
        "unique": {"unique": np.unique},
        "mask": {"x[mask]": lambda x, m: x[m], "compress": lambda x, m: np.compress(m, x)},
        "median": {"median": np.median},
        "svd": {"svd": lambda x: np.linalg.svd(x, full_matrices=False)},
        "lstsq": {"lstsq": lambda a, b: np.linalg.lstsq(a, b, rcond=None)},
    }


def _torch() -> dict[str, dict[str, Way]]:
    import torch

    def middle_of_sorted(x: Any) -> Any:
        ordered = torch.sort(x).values
        half = x.numel() // 2
        return (ordered[half - 1] + ordered[half]) / 2

    def two_kth_values(x: Any) -> Any:
        half = x.numel() // 2
        return (torch.kthvalue(x, half).values + torch.kthvalue(x, half + 1).values) / 2

    return {
        "scatter": {
            "index_add": lambda v, i, n: torch.zeros(n, dtype=v.dtype).index_add(0, i, v),
            "scatter_add": lambda v, i, n: torch.zeros(n, dtype=v.dtype).scatter_add(0, i, v),
        },
        "sort": {"sort": lambda x: torch.sort(x, stable=True).values},
        "unique": {"unique": torch.unique},
        "mask": {"x[mask]": lambda x, m: x[m], "masked_select": torch.masked_select},
        "median": {"sort": middle_of_sorted, "kthvalue": two_kth_values},
        "svd": {"svd": lambda x: torch.linalg.svd(x, full_matrices=False)},
        # only this driver gives the singular values as well
        "lstsq": {"lstsq gelsd": lambda a, b: torch.linalg.lstsq(a, b, driver="gelsd")},
    }


def _mlx() -> dict[str, dict[str, Way]]:
    import mlx.core as mx
    import numpy as np

    def host(x: Any) -> np.ndarray:
        mx.eval(x)
        return np.array(x, copy=False)

    def read(x: Any) -> Any:
        return x.item()

    def scatter(values: Any, indices: Any, size: int) -> Any:
        if read(mx.max(indices)) >= size or read(mx.min(indices)) < 0:
            raise IndexError
        return mx.zeros(size, values.dtype).at[indices].add(values)

    def compacted(x: Any, mask: Any) -> Any:
        count = read(mx.sum(mask))
        places = mx.where(mask, mx.cumsum(mask.astype(mx.int32)) - 1, count)
        chosen = mx.zeros(count + 1, mx.int32)
        chosen[places] = mx.arange(x.size, dtype=mx.int32)
        return x[chosen[:count]]

    def unique(x: Any) -> Any:
        ordered = mx.sort(x)
        first = mx.concatenate([mx.array([True]), ordered[1:] != ordered[:-1]])
        return compacted(ordered, first)

    def middle_of_sorted(x: Any) -> Any:
        ordered = mx.sort(x)
        half = x.size // 2
        return (ordered[half - 1] + ordered[half]) / 2

    def through_qr(x: Any) -> Any:
        q, r = mx.linalg.qr(x, stream=mx.cpu)
        u, s, v = mx.linalg.svd(r, stream=mx.cpu)
        return q @ u, s, v

    def solved_by_qr(a: Any, b: Any) -> Any:
        u, s, v = through_qr(a)
        return mx.transpose(v) @ ((mx.transpose(u) @ b) / s[:, None])

    return {
        "scatter": {"at[].add": scatter},
        "sort": {"sort": mx.sort},
        "unique": {
            "sort and compare": unique,
            "on the host": lambda x: mx.array(np.unique(host(x))),
        },
        "mask": {
            "compact by cumsum": compacted,
            "on the host": lambda x, m: mx.array(host(x)[host(m)]),
        },
        "median": {"sort": middle_of_sorted},
        "svd": {"qr and svd": through_qr},
        "lstsq": {"qr and svd": solved_by_qr},
    }


WAYS = {"numpy": _numpy, "torch": _torch, "mlx": _mlx}
"""A function for each backend that gives its ways, since only installed libraries can be imported."""
