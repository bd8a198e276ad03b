"""A JSON parser that uses only the C part of the standard library's `json`, whose import takes 8 ms."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BLANK = " \t\r\n"


class _Rules:
    """The scanner's settings, with the defaults of `json.loads`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float  # NaN and the infinities: float accepts their JSON names
    memo: dict[str, str]

    def __init__(self) -> None:
        self.memo = {}


def read_json(text: str) -> Any:
    """Parse a JSON text.

    Raises:
        ValueError: The text is not JSON, or nested too deeply.
    """
    rules: Any = _Rules()
    try:
        from _json import make_scanner

        scan = make_scanner(rules)
    except (ImportError, AttributeError):  # another Python, or one whose scanner needs more settings
        return _read_whole(text)
    bare = text.strip(_BLANK)
    try:
        value, end = scan(bare, 0)
    except (StopIteration, RecursionError, SystemError):  # instead of JSONDecodeError: json is not imported
        raise ValueError("not JSON") from None
    if end != len(bare):
        raise ValueError("more than one JSON value")
    return value


def _read_whole(text: str) -> Any:
    from json import loads

    try:
        return loads(text)
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
