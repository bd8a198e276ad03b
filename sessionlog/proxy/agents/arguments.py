"""Options in a command's arguments, as the agents' parsers find them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def option_values(arguments: Sequence[str], *names: str) -> Iterator[tuple[int, str]]:
    """Yield the values of an option, with the places in the arguments where they stand.

    `--name value`, `--name=value`, and for a short name `-nvalue`; nothing behind `--`.
    """
    at = 0
    while at < len(arguments) and arguments[at] != "--":
        word = arguments[at]
        name, equals, value = word.partition("=")
        if word in names:
            at += 1
            if at < len(arguments):
                yield at, arguments[at]
        elif equals and name in names:
            yield at, value
        elif not word.startswith("--") and word[:2] in names:
            yield at, word[2:]
        at += 1


def option_value(arguments: Sequence[str], *names: str) -> tuple[int, str] | None:
    """Return the last value of an option, which is the one that counts, and its place; None if it is not given."""
    found = None
    for found in option_values(arguments, *names):  # noqa: B007 - the last one is wanted
        pass
    return found


def replace_value(arguments: list[str], place: int, old: str, new: str) -> None:
    """Replace a value where it stands: alone, or behind the option's name in one word."""
    arguments[place] = arguments[place].removesuffix(old) + new
