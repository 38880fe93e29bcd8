"""Modules: callables that hold parameters, and the activations."""
