"""Foundations that know neither a tensor library nor an op: dtypes, promotion, trees, atomic files."""
