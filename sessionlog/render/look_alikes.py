"""Replace signs that a terminal's encoding lacks by similar ASCII characters of the same width."""

from __future__ import annotations

import codecs

ERRORS = "sessionlog.look_alike"
"""The error handler's name, for `str.encode` and `TextIOWrapper.reconfigure`."""

_SIGNS = {
    **dict.fromkeys("█▉▊▋▌▇", "#"), **dict.fromkeys("▍▎▏│┃┆├⋮", "|"), **dict.fromkeys("▁▂░…◌", "."),
    **dict.fromkeys("▃▄▒", ":"), **dict.fromkeys("▅▆▓", "+"), **dict.fromkeys("·–—─‐−", "-"),
    **dict.fromkeys("━═⇄", "="), **dict.fromkeys("“”", '"'), **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("▸▹→↳›⇢", ">"), **dict.fromkeys("◂←", "<"), **dict.fromkeys("▼⇣", "v"), **dict.fromkeys("✘×", "x"),
    **dict.fromkeys("⚙•", "*"), **dict.fromkeys("╱⏎", "/"),
    "▲": "^", "└": "`", "▚": "%", "↺": "@", "⊘": "0", "✔": "+", "●": "o", "≠": "!", "€": "E", "£": "L", "¥": "Y",
    "₹": "R", "₩": "W", "₴": "H", "₪": "S",
    "\N{NO-BREAK SPACE}": " ",
}  # fmt: skip


def look_alike(error: UnicodeError) -> tuple[str, int]:
    """Replace what cannot be encoded: known signs by their look-alikes, the rest by `?`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_SIGNS.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


codecs.register_error(ERRORS, look_alike)
