"""The bodies of ops on JAX, one module for each family."""
