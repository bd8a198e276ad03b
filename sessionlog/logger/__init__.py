"""How it is written: SessionLogger, its ids and its health."""
