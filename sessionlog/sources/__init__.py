"""Where logs come from: one module per agent, and the lean records they give."""
