"""Sources: one module per agent that finds and parses its logs, and the records made of them."""
