"""Messages: one type for messages of all providers, its JSON form, and a reader for the formats of providers."""
