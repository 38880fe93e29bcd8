"""Norms and distances, on MLX: nothing is better than the derived bodies."""
