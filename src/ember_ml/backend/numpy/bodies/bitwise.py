"""Bitwise ops on NumPy."""

from __future__ import annotations

import numpy as np

bitwise_and = np.bitwise_and
bitwise_or = np.bitwise_or
bitwise_xor = np.bitwise_xor
bitwise_invert = np.bitwise_invert
bitwise_left_shift = np.left_shift
bitwise_right_shift = np.right_shift
