"""Values: parse times, counts, names and folders as agents log them, one function for each."""

from __future__ import annotations

import ntpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from sessionlog.events.money import read_usd
from sessionlog.events.times import SECOND, epoch_ns, parse_time
from sessionlog.events.tokens import MAX_COUNT, TokenUsage, read_count
from sessionlog.hashes import blake2b
from sessionlog.sources.record import LONGEST_NAME
from sessionlog.sources.steps import Tokens

Json = Mapping[str, Any]
"""A JSON object."""

_DRIVE = re.compile(r"(?:\\\\\?\\)?([A-Za-z]):(?=[\\/]|\Z)")
_SEPARATORS = re.compile(r"[\\/]+")
_LONG_SHARE = "\\\\?\\UNC\\"
_FIRST_TIME_NS = 1_000_000_000 * SECOND  # September 2001: agents are younger


def read_time(value: Any, *fields: str) -> int | None:
    """Return nanoseconds for RFC 3339 text, or for a number since 1970 in the unit of its size; None for others.

    The value may be inside an object, under these fields.
    """
    if fields:
        value = _inside(value, fields)
    if type(value) is str:
        return parse_time(value)
    time_ns = epoch_ns(value)
    return time_ns if time_ns is not None and time_ns >= _FIRST_TIME_NS else None


def read_duration(value: Any) -> float | None:
    """Return milliseconds; None for an implausible duration of a call."""
    return float(value) if type(value) in (int, float) and 0 <= value < 1e12 else None


def is_failure(value: Any, *fields: str) -> bool:
    """Return whether an exit code, or the one inside an object under these fields, is that of a failed command.

    Some agents log a command that ran as completed, whatever it ended with.
    """
    code = _inside(value, fields)
    return type(code) is int and code != 0


def _inside(value: Any, fields: Iterable[str]) -> Any:
    """Return the value at a path of fields in nested objects; None if a field is missing."""
    for field in fields:
        value = value.get(field) if isinstance(value, dict) else None
    return value


def name(value: Any, *fields: str) -> str:
    """Return a logged name, truncated, or the one inside an object under these fields; "" for anything else."""
    if value is None:
        return ""
    if fields:
        value = _inside(value, fields)
    if not isinstance(value, str):
        return ""
    return value if len(value) <= LONGEST_NAME else value[:LONGEST_NAME]


def text(value: Any, *fields: str) -> str:
    """Return a text, or the one inside an object under these fields; "" for anything else."""
    if fields:
        value = _inside(value, fields)
    return value if isinstance(value, str) else ""


def mapping(value: Any, *fields: str) -> Json:
    """Return an object, or the one inside it under these fields; an empty one for anything else."""
    if fields:
        value = _inside(value, fields)
    return value if isinstance(value, dict) else {}


def objects(value: Any, *fields: str) -> list[Json]:
    """Return the objects of a list, or of the one inside an object under these fields; none for anything else."""
    if fields:
        value = _inside(value, fields)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def folder(value: Any, *fields: str) -> str:
    r"""Return an absolute path, of any platform, or the one inside an object; "" for anything else.

    A path on a Windows drive is spelled in one way, `C:\src\api`: agents differ in the case of the letter and in the
    separators, some end it with one, and programs written in Rust put `\\?\` in front, for a share `\\?\UNC\`.
    """
    if fields:
        value = _inside(value, fields)
    if not isinstance(value, str):
        return ""
    if value.startswith("/"):
        return value
    if drive := _DRIVE.match(value):
        rest = _SEPARATORS.sub(r"\\", value[drive.end() :])
        return f"{drive[1].upper()}:" + rest[:1] + rest[1:].rstrip("\\")
    if value.upper().startswith(_LONG_SHARE):
        value = "\\\\" + value[len(_LONG_SHARE) :]
    return value if ntpath.splitdrive(value)[0] else ""


def fingerprint(*parts: Any) -> str:
    """Return a short name for values that copies of a response share."""
    joined = "|".join(map(str, parts))
    return blake2b(joined.encode("utf-8", "replace"), digest_size=12).hexdigest()


def tokens(
    data: Any,
    *,
    input: str,  # noqa: A002 - the class's name
    output: str,
    cache_read: str = "",
    cache_write: str = "",
    cache_write_1h: str = "",
    reasoning: str = "",
    is_inclusive: bool = False,
    is_reasoning_apart: bool = False,
    where: str = "",
) -> Tokens | None:
    """Return the token counts of an object with these names of fields.

    Args:
        data: A JSON object, or a Struct; None gives None, anything else no tokens and an issue.
        input: The field of the input tokens.
        output: The field of the output tokens.
        cache_read: The field of the tokens read from a cache; "" for none.
        cache_write: The field of the tokens written to a cache.
        cache_write_1h: The field of those that are kept for an hour; they are a part of the cache writes.
        reasoning: The field of the reasoning tokens.
        is_inclusive: The input contains what was read from and written to a cache.
        is_reasoning_apart: The output does not contain the reasoning.
        where: A prefix for the issues.
    """
    if data is None:
        return None
    if isinstance(data, Struct):
        data = structs.asdict(data)
    if not isinstance(data, dict):
        return Tokens(TokenUsage(), (f"{where}usage is a {type(data).__name__}",))
    names = (input, output, cache_read, cache_write, cache_write_1h, reasoning)
    counts, issues = read_counts(names, [data.get(field) if field else 0 for field in names], where)
    return Tokens(disjoint(*counts, is_inclusive=is_inclusive, is_reasoning_apart=is_reasoning_apart), issues)


def read_counts(names: Sequence[str], values: Sequence[Any], where: str = "") -> tuple[Sequence[int], tuple[str, ...]]:
    """Return logged counts, and messages about invalid ones (with these names, after `where`)."""
    for value in values:
        if type(value) is not int or value < 0 or value > MAX_COUNT:
            break
    else:
        return values, ()
    found = [read_count(value) for value in values]
    issues = tuple(f"{where}{field}: {issue}" for field, (_, issue) in zip(names, found, strict=True) if issue)
    return [count for count, _ in found], issues


def disjoint(
    given: int,
    output: int,
    cache_read: int = 0,
    cache_write: int = 0,
    cache_write_1h: int = 0,
    reasoning: int = 0,
    *,
    is_inclusive: bool = False,
    is_reasoning_apart: bool = False,
) -> TokenUsage:
    """Return counts in disjoint classes; a part is never more than its whole."""
    if is_inclusive:
        cache_read = min(cache_read, given)
        cache_write = min(cache_write, given - cache_read)
        given -= cache_read + cache_write
    if is_reasoning_apart:
        output += reasoning
    written = max(cache_write, cache_write_1h)
    return TokenUsage(given, output, cache_read, written, min(reasoning, output), cache_write_1h)


def cost(value: Any) -> tuple[int | None, tuple[str, ...]]:
    """Return a cost in USD as nano-USD, None for unknown; and messages about an invalid one."""
    cost_nano, issue = read_usd(value)
    return cost_nano, (issue,) if issue else ()
