"""Turn lines into text: with the theme's colours on a terminal, plain elsewhere.

A replay has no other escape sequences than those made here of the theme's styles.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sessionlog.render.replay.lines import Line

if TYPE_CHECKING:
    from rich.style import Style

_SYSTEMS = {"standard": "STANDARD", "256": "EIGHT_BIT", "truecolor": "TRUECOLOR"}
_ASCII = str.maketrans("━│·…▸▹◂⚙✘◌⇄⇢⇣↺→›⏎–", "=|-~>><*xo%>v@>>$-")
"""Replacements of the replay's signs where the encoding lacks them, each of the same width."""


class Paint:
    """Turns lines into text for one sink.

    Args:
        color_system: Rich's name of the terminal's colours; None is no colour.
        encoding: The sink's encoding.
    """

    __slots__ = ("_encoding", "_system")

    def __init__(self, *, color_system: str | None = None, encoding: str = "utf-8") -> None:
        self._system = _system(_SYSTEMS.get(color_system or ""))
        self._encoding = None if encoding.lower().replace("-", "").replace("_", "") in {"utf8", "utf8sig"} else encoding

    def __call__(self, line: Line) -> str:
        """Return the line as text, without its line end and trailing blanks."""
        if self._system is None:
            return self._encodable("".join([part.text for part in line]).rstrip(" "))
        painted = [_template(part.style, self._system) % part.text for part in line if part.text]
        return self._encodable("".join(painted).rstrip(" "))

    def _encodable(self, text: str) -> str:
        if self._encoding is None or text.isascii():
            return text
        return text.translate(_ASCII).encode(self._encoding, "replace").decode(self._encoding)


def _system(name: str | None) -> Any:
    """Rich's colour system; rich is imported only where there are colours."""
    if name is None:
        return None
    from rich.color import ColorSystem

    return ColorSystem[name]


@cache
def _template(style: str | Style, system: Any) -> str:
    """Return `%s` between the escape sequences of a style."""
    from sessionlog.render.console import THEME

    found = THEME.styles[style or "none"] if isinstance(style, str) else style
    return found.render("%s", color_system=system)
