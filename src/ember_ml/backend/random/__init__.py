"""The portable random stream: generator, cipher, distributions."""
