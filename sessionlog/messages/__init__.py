"""Messages: one value for a message of any provider, its JSON, and the readers of providers' shapes."""
