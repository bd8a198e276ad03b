"""SEARCH: find words in the sessions of every agent."""
