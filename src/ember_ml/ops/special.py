"""Special functions and the activations that the foundation needs: erf and its kin, sigmoid, softmax."""

from __future__ import annotations

__all__: list[str] = []
