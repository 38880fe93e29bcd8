"""Turn a call of an op into a call of the native library."""
