"""The portable tensor."""

from __future__ import annotations

from ember_ml.core.dtypes import EmberDType
from ember_ml.tensor.ember_tensor import EmberTensor

__all__ = ["EmberDType", "EmberTensor"]
