"""SEARCH: where something was said, in the sessions of every agent."""
