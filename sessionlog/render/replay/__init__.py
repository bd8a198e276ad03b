"""Replay: a session as a person wants to read it.

Events are folded into blocks (`fold_replay`: what is worth showing and what has been shown), blocks are laid out as
lines of styled, harmless text (`lay_out`: how it looks), and lines become text (`replay`) or colours (`Paint`). Every
stage is a generator: a log of any size starts to show at once, in constant memory.
"""

from sessionlog.render.replay.fold import fold_replay
from sessionlog.render.replay.layout import lay_out
from sessionlog.render.replay.paint import Paint
from sessionlog.render.replay.text import replay

__all__ = ["Paint", "fold_replay", "lay_out", "replay"]
