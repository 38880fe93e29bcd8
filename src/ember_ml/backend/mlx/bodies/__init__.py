"""Bodies of ops, one module per family."""
