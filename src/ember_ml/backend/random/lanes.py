"""The functions of a library for the formulas of random numbers, where it has NumPy's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ember_ml.core.dtypes import EmberDType

__all__ = ["Lanes"]


class Lanes:
    """Functions of arrays of the library ``xp``, whose dtypes are ``dtypes``."""

    def __init__(self, xp: Any, dtypes: Mapping[EmberDType, Any]) -> None:
        self._xp, self._dtypes = xp, dtypes

    def cast(self, x: Any, dtype: EmberDType) -> Any:
        return x.astype(self._dtypes[dtype])

    def view(self, x: Any, dtype: EmberDType) -> Any:
        return x.view(self._dtypes[dtype])

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return self._xp.where(condition, x, y)

    def otherwise(self, condition: Any, x: Any, compute: Callable[[Any], Any], source: Any) -> Any:
        return self.where(condition, x, compute(source))

    def keep(self, x: Any) -> Any:
        return x

    def sqrt(self, x: Any) -> Any:
        return self._xp.sqrt(x)
