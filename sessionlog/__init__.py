"""sessionlog: the flight recorder and the meter for AI agents."""
