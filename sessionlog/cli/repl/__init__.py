"""A chat at the terminal: `loop` is its course, `words` what begins with /, `faces` how it is told."""
