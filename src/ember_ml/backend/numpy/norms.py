"""Norms and distances, on NumPy: nothing is better than the derived bodies."""
