"""The portable tensor."""

from __future__ import annotations

from ember_ml.backend.selection import backend_of
from ember_ml.core.dtypes import EmberDType
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.operations import Operations
from ember_ml.typing import recognize_tensors

__all__ = ["EmberDType", "EmberTensor"]

recognize_tensors(lambda x: isinstance(x, Operations) or backend_of(x) is not None)
