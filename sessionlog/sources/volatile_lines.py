"""How the lines begin that agents add to the output of a command and that differ each time."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VOLATILE_LINES: Mapping[str, tuple[str, ...]] = {
    "codex": ("Chunk ID:", "Wall time:", "Original token count:"),
    "gemini": ("Process Group PGID:", "Background PIDs:"),
}
"""Prefixes by the id of the source; compare outputs without these lines."""
