"""Ops that make, convert, reshape, join, index and sort tensors."""
