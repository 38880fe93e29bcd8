"""Elementwise ops on PyTorch."""

from __future__ import annotations

import torch

add = torch.add
subtract = torch.subtract
multiply = torch.multiply
divide = torch.divide
sin = torch.sin
cos = torch.cos
exp = torch.exp
