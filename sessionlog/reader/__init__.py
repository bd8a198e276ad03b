"""How it is read back: stream, follow, check and repair."""
