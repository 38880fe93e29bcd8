"""The engine of gradients: the tape, its reverse pass, and the native engines."""
