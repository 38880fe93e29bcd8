"""Matrices made of tensors, on PyTorch."""

from __future__ import annotations

import torch

from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.unsigned import moved

tril = ByDType(torch.tril, moved(torch.tril))
triu = ByDType(torch.triu, moved(torch.triu))
diag = torch.diag
