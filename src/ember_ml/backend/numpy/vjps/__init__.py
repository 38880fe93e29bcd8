"""Hand-written vector-Jacobian products of NumPy."""
