"""Adapters for other packages that work with tensors."""
