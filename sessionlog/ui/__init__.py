"""`sessionlog ui`: sessions, conversations, usage, running sessions and budgets on the whole terminal.

The only place that imports textual. Views show the lines that other commands print; what they show is made in threads.
"""
