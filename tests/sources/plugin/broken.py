"""A plug-in that fails when it is imported."""

raise RuntimeError("the inkwell is empty")
