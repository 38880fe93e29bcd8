"""Look inside a model while it computes: which layer and op made a NaN, which take the time, what the shapes are."""
