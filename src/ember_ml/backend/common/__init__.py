"""Argument checks, geometry and formulas that every backend shares."""
