"""A chat at the terminal: `loop` runs it, `commands` has the slash commands, `inputs` and `outputs` its two ends."""
