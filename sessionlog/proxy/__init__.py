"""`sessionlog run`: a command whose requests to models are recorded by a proxy on the loopback interface."""
