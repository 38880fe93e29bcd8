"""Special functions and the activations that the foundation needs: erf and its kin, sigmoid, softmax, on NumPy."""

from __future__ import annotations
