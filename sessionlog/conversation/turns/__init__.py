"""One turn: the agent is asked, its tools run, failures are tried again, and every piece is passed on as it comes."""
