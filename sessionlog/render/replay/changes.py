"""Find the change of a file in a tool call, as a diff: edits by old and new text, and patches in Codex's format."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

Json = Any
_PAIRS = (("old_string", "new_string"), ("old_str", "new_str"), ("oldText", "newText"), ("old_text", "new_text"))
_PATCH = "*** Begin Patch"
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "fish"})
_RUNS = re.compile(r"-[li]*c[li]*")
_HANDED = re.compile(r"\s*(?:apply_patch\s+(?:<<\s*['\"]?(\w+)['\"]?\s*|['\"])?)?")
_CONTEXT = 2
_MOST = 20_000  # lines and pairs of equal lines to compare; a larger edit shows all old lines, then all new ones


class ChangedLine(NamedTuple):
    """A line of a diff; `sign` is `+`, `-`, a blank, or `@` for a file name or left-out lines."""

    sign: str
    text: str


def changes_of(arguments: Json) -> tuple[list[ChangedLine], frozenset[str]]:
    """Return the lines that a call changes, and the names of the arguments that hold them; empty if it is no edit."""
    if isinstance(arguments, str):
        arguments = {"": arguments}
    if not isinstance(arguments, Mapping):
        return [], frozenset()
    for old, new in _PAIRS:
        if isinstance(arguments.get(old), str) and isinstance(arguments.get(new), str):
            lines = _diff(arguments[old], arguments[new])
            return lines, frozenset({old, new} if lines else ())
    edits = arguments.get("edits")
    if isinstance(edits, list | tuple) and edits:
        found = [changes_of(edit)[0] for edit in edits if isinstance(edit, Mapping) and "edits" not in edit]
        if len(found) == len(edits) and all(found):
            return [line for lines in found for line in (*lines, ChangedLine("@", "…"))][:-1], frozenset({"edits"})
    for key, value in arguments.items():
        text = command_of(value) if isinstance(value, list | tuple) else value
        lines = _patch_in(text) if isinstance(text, str) else []
        if lines:
            return lines, frozenset({key})
    return [], frozenset()


def command_of(words: Sequence[Json]) -> str | None:
    """Return a list of words as a command line, without the shell that runs it; None if they are no strings."""
    if not words or not all(isinstance(word, str) for word in words):
        return None
    if len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and _RUNS.fullmatch(words[1]):
        return str(words[2])
    return shlex.join(words)


def _diff(old: str, new: str) -> list[ChangedLine]:
    before, after = old.splitlines(), new.splitlines()
    counts = Counter(before)
    if len(before) + len(after) + sum(counts[line] for line in after) > _MOST:
        return [*(ChangedLine("-", line) for line in before), *(ChangedLine("+", line) for line in after)]
    lines: list[ChangedLine] = []
    for number, group in enumerate(SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_CONTEXT)):
        lines += [ChangedLine("@", "…")] if number else []
        for tag, start, stop, begin, end in group:
            lines += [ChangedLine(" " if tag == "equal" else "-", line) for line in before[start:stop]]
            lines += [ChangedLine("+", line) for line in after[begin:end] if tag != "equal"]
    return lines


def _patch_in(text: str) -> list[ChangedLine]:
    """Return the lines of a patch, or of a command that only passes one to `apply_patch`; empty for any other text."""
    before, mark, rest = text.partition(_PATCH)
    patch, end, after = rest.partition("\n*** End Patch")
    handed = _HANDED.fullmatch(before)
    if not mark or not end or handed is None or after.strip().strip("'\"") not in ("", handed[1] or ""):
        return []
    found: list[ChangedLine] = []
    for line in patch.splitlines()[1:]:
        if line.startswith(("***", "@@")):
            found.append(ChangedLine("@", line))
        else:
            found.append(ChangedLine(line[0] if line.startswith(("+", "-")) else " ", line[1:]))
    return found
