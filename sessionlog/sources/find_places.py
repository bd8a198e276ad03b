"""Places: templates of the paths where an agent's logs may be, expanded by an environment.

`~` is the home folder, `$NAME` a variable, `*` any characters within one folder's names. `$XDG_DATA_HOME`,
`$XDG_CONFIG_HOME` and `$XDG_STATE_HOME` have their platform's default; a template with another variable that is not
set is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from sessionlog.places import config_home, data_home, state_home, user_home

Env = Mapping[str, str]

_VARIABLE = re.compile(r"\$([A-Z_0-9]+)")
_XDG: Mapping[str, Callable[[Env], str]] = {
    "XDG_DATA_HOME": data_home,
    "XDG_CONFIG_HOME": config_home,
    "XDG_STATE_HOME": state_home,
}


class Place(Struct, frozen=True):
    """A place with alternative templates.

    Attributes:
        templates: In order of preference: the first whose variables are set is used, and the others are not.
        below: Folders or files below it; "" is the place itself. One with a variable that is not set is left out; a
            root whose own name is one of them is taken as that folder.
        is_list: The variable may hold several folders, with commas between them.
        unless: A variable: if it is set, the place is left out.
    """

    templates: tuple[str, ...]
    below: tuple[str, ...] = ("",)
    is_list: bool = False
    unless: str = ""


def first_of(*templates: str, below: Sequence[str] = ("",), is_list: bool = False, unless: str = "") -> Place:
    """Return a place that uses the first template whose variables are set."""
    return Place(templates, tuple(below), is_list, unless)


def expand_places(env: Env, places: Iterable[Place | str]) -> list[str]:
    """Return the paths of places in order, each once; those with a `*` only if they exist."""
    return list(dict.fromkeys(path for pattern in _patterns(env, places) for path in _matches(pattern)))


def watched_prefixes(env: Env, places: Iterable[Place | str]) -> Iterator[tuple[str, str]]:
    """Yield (folder, prefix of a name) for each `*`: new names there are new places."""
    for pattern in _patterns(env, places):
        parts = pattern.split(os.sep)
        for number, part in enumerate(parts):
            if "*" in os.sep.join(parts[: number + 1]):
                for folder in _matches(os.sep.join(parts[:number])):
                    yield folder or os.sep, part.partition("*")[0]


def _patterns(env: Env, places: Iterable[Place | str]) -> Iterator[str]:
    for place in places:
        if isinstance(place, str):
            place = Place((place,))  # noqa: PLW2901 - the short spelling of the same
        for root in _roots(env, place):
            for part in place.below:
                filled = _fill(env, part)
                if filled or not part:
                    yield root if filled in {"", os.path.basename(root)} else os.path.join(root, filled)


def _roots(env: Env, place: Place) -> list[str]:
    if place.unless and env.get(place.unless, "").strip():
        return []
    for template in place.templates:
        filled = _fill(env, template)
        roots = [one.strip() for one in filled.split(",")] if filled and place.is_list else [filled]
        found = [user_home(env) + root[1:] if re.match(r"~(?:[/\\]|\Z)", root) else root for root in roots if root]
        if found:
            return [os.path.normpath(root) for root in found]
    return []


def _fill(env: Env, template: str) -> str:
    """Expand the variables of a template; "" if one of them is not set."""
    for variable in _VARIABLE.findall(template):
        value = _XDG[variable](env) if variable in _XDG else env.get(variable, "").strip()
        if not value:
            return ""
        template = template.replace(f"${variable}", value, 1)
    return template


def _matches(pattern: str) -> Iterator[str]:
    """Yield the paths that match a pattern; a pattern without a `*` yields itself."""
    before, star, _ = pattern.partition("*")
    if not star:
        yield pattern
        return
    folder = os.path.dirname(before)
    part, _, rest = pattern[len(folder) :].lstrip(os.sep).partition(os.sep)
    try:
        names = sorted(name for name in os.listdir(folder or os.sep) if fnmatchcase(name, part))
    except OSError:
        return
    for name in names:
        yield from _matches(os.path.join(folder, name, rest) if rest else os.path.join(folder, name))
