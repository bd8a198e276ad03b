"""The guard: a hook that coding agents run before a prompt or a tool call, and that stops them at a limit."""
