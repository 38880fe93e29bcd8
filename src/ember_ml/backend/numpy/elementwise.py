"""Elementwise ops on NumPy: ufuncs, and what they compute otherwise than the contract says."""

from __future__ import annotations

import numpy as np

add = np.add
subtract = np.subtract
multiply = np.multiply
divide = np.divide
sin = np.sin
cos = np.cos
exp = np.exp
