"""The cases in which the libraries differ, and the one rule that every backend follows in each."""
