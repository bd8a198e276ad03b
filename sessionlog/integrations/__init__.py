"""Plugs for the libraries of agents: one file each, on the public logger; no library is imported before its use."""
