"""JSON, read by the part of the standard library that is in C, without the 8 ms that the rest takes to import."""

from __future__ import annotations

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from typing import Any

_BLANK = " \t\r\n"


class _Rules:
    """What the scanner asks its maker: as `json.loads` has it by default."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float  # NaN and the infinities, by the very names that they have here
    memo: dict[str, str]

    def __init__(self) -> None:
        self.memo = {}


def read_json(text: str) -> Any:
    """Return the value that a text is.

    Raises:
        ValueError: It is no JSON, or nested too deeply.
    """
    rules: Any = _Rules()
    try:
        from _json import make_scanner  # noqa: PLC0415 - missing where Python is not CPython

        scan = make_scanner(rules)
    except (ImportError, AttributeError):  # or it asks for more than it did
        return _read_whole(text)
    bare = text.strip(_BLANK)
    try:
        value, end = scan(bare, 0)
    except (StopIteration, RecursionError, SystemError):  # what it would say of the mistake is not imported
        raise ValueError("not JSON") from None
    if end != len(bare):
        raise ValueError("more than one JSON value")
    return value


def _read_whole(text: str) -> Any:
    from json import loads  # noqa: PLC0415 - see above

    try:
        return loads(text)
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
