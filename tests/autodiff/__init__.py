"""Gradients: every differentiable op against finite differences, the transforms, and what is built on them."""
