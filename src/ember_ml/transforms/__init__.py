"""Functions of functions: gradients, compilation, control flow, solvers."""
