"""One turn: requests to the agent, tool runs, retries, and the stream of pieces."""
