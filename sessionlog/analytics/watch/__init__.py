"""Watch: running sessions, their pace and what is left, as seen at one moment after another."""
