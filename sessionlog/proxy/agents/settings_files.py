"""The settings of agents, read without trust: whatever cannot be read counts as empty, and a note names it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sessionlog.errors import SessionLogError
from sessionlog.files import read_small
from sessionlog.proxy.agents.draft import Draft

Json = Any

_LEVELS = 64
_STRING = r'"(?:\\.|[^"\\])*+(?:"|\Z)'  # one without an end goes to the end of the text: no text takes quadratic time
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*(?:.*?\*/|.*\Z)", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])", re.DOTALL)
_ASSIGNMENT = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=(.*)$", re.MULTILINE)


def read_json(draft: Draft, path: str) -> dict[str, Json]:
    """Return the object in a JSON file, which may have comments and last commas; {} if there is none."""
    return _read(draft, path, "JSON", parse_json)


def read_toml(draft: Draft, path: str) -> dict[str, Json]:
    """Return the document in a TOML file; {} if there is none."""
    return _read(draft, path, "TOML", lambda text: _shallow(tomllib.loads(text)))


def read_dotenv(draft: Draft, path: str) -> dict[str, str]:
    """Return the assignments of a `.env` file, without expansion of variables; {} if there is none."""
    return _read(draft, path, "text", lambda text: dict(_assignments(text)))


def parse_json(text: str) -> Json:
    """Return the value of a JSON text with comments and last commas.

    Raises:
        ValueError: It is none, or one that is nested too deeply to be written again.
        RecursionError: It is nested too deeply to be read.
    """
    try:
        value = json.loads(text)
    except ValueError:
        for unwanted in (_COMMENT, _LAST_COMMA):
            text = unwanted.sub(_kept_string, text)
        value = json.loads(text)
    return _shallow(value)


def as_table(value: Json) -> Mapping[str, Json]:
    """Return a value that is an object; {} for any other."""
    return value if isinstance(value, dict) else {}


def text_at(value: Json, *keys: str) -> str:
    """Return the text at a path of keys; "" if there is none."""
    for key in keys:
        value = as_table(value).get(key)
    return value if isinstance(value, str) else ""


def first_text(layers: Iterable[Mapping[str, Any]], *keys: str) -> str:
    """Return the text at a path of keys in the first settings that have one; "" if none has."""
    return next((found for layer in layers if (found := text_at(layer, *keys))), "")


def _read(draft: Draft, path: str, kind: str, parse: Callable[[str], Json]) -> dict[str, Json]:
    try:
        content = read_small(path)
        return dict(as_table(parse(content.decode("utf-8-sig")))) if content else {}
    except (OSError, SessionLogError, ValueError, RecursionError):
        draft.note(f"{path} cannot be read as {kind}; if it names a server, requests go there and are not recorded.")
        return {}


def _shallow(value: Json) -> Json:
    """Return a value.

    Raises:
        ValueError: It is nested deeper than settings are; functions that call themselves would not reach its end.
    """
    level = [value]
    for _ in range(_LEVELS):
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [part for parts in inner for part in parts]
        if not level:
            return value
    raise ValueError(f"more than {_LEVELS} levels")


def _kept_string(found: re.Match[str]) -> str:
    return found[0] if found[0][0] == '"' else " "


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    for name, given in _ASSIGNMENT.findall(text):
        value = given.strip()
        if value[:1] in ("'", '"') and value[0] in value[1:]:
            yield name, value[1 : value.index(value[0], 1)]
        else:
            yield name, value.partition(" #")[0].rstrip()
