"""Places: templates of the paths where an agent's logs may be, expanded by an environment.

`~` is the home folder, `$NAME` a variable, one `*` any characters within a folder's name. `$XDG_DATA_HOME`,
`$XDG_CONFIG_HOME` and `$XDG_STATE_HOME` have their platform's default; a template with another variable that is not
set is left out. The module imports little: every report expands these.
"""

from __future__ import annotations

import os

from sessionlog.places import config_home, data_home, state_home, user_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Env = Mapping[str, str]

_XDG = {"XDG_DATA_HOME": data_home, "XDG_CONFIG_HOME": config_home, "XDG_STATE_HOME": state_home}
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")


class Place:
    """A place with alternative templates.

    Attributes:
        templates: In order of preference: the first whose variables are set is used, and the others are not.
        below: Folders or files below it; "" is the place itself. One with a variable that is not set is left out; a
            root whose own name is one of them is taken as that folder.
        is_list: The variable may hold several folders, with commas between them.
        unless: A variable: if it is set, the place is left out.
    """

    __slots__ = ("below", "is_list", "templates", "unless")

    def __init__(
        self, templates: Sequence[str], below: Sequence[str] = ("",), *, is_list: bool = False, unless: str = ""
    ) -> None:
        self.templates, self.below, self.is_list, self.unless = tuple(templates), tuple(below), is_list, unless


if TYPE_CHECKING:
    Template = Place | str | Callable[[Env], Iterable[str]]
    """A place, a template of one path, or what yields paths."""


def first_of(*templates: str, below: Sequence[str] = ("",), is_list: bool = False, unless: str = "") -> Place:
    """Return a place that uses the first template whose variables are set."""
    return Place(templates, below, is_list=is_list, unless=unless)


def expand_places(env: Env, places: Iterable[Template]) -> list[str]:
    """Return the paths of places in order, each once; those with a `*` only if they exist."""
    return list(dict.fromkeys(path for place in places for path in _paths(env, place)))


def _paths(env: Env, place: Template) -> Iterator[str]:
    if callable(place):
        yield from place(env)
        return
    place = Place((place,)) if isinstance(place, str) else place
    for root in _roots(env, place):
        for part in place.below:
            filled = _fill(env, part)
            if filled or not part:
                yield from _matches(root if filled in {"", os.path.basename(root)} else os.path.join(root, filled))


def _roots(env: Env, place: Place) -> list[str]:
    if place.unless and env.get(place.unless, "").strip():
        return []
    for template in place.templates:
        filled = _fill(env, template)
        roots = [one.strip() for one in filled.split(",")] if filled and place.is_list else [filled]
        if any(roots):
            return [os.path.normpath(_below_home(env, root)) for root in roots if root]
    return []


def _below_home(env: Env, path: str) -> str:
    return user_home(env) + path[1:] if path == "~" or path.startswith(("~/", "~\\")) else path


def _fill(env: Env, template: str) -> str:
    """Expand the variables of a template; "" if one of them is not set."""
    filled, *pieces = template.split("$")
    for piece in pieces:
        variable = piece[: next((at for at, sign in enumerate(piece) if sign not in _NAME), len(piece))]
        value = _XDG[variable](env) if variable in _XDG else env.get(variable, "").strip()
        if not value:
            return ""
        filled += value + piece[len(variable) :]
    return filled


def _matches(pattern: str) -> Iterator[str]:
    """Yield the paths that match a pattern; a pattern without a `*` yields itself."""
    before, star, _ = pattern.partition("*")
    if not star:
        yield pattern
        return
    folder = os.path.dirname(before)
    part, _, rest = pattern[len(folder) :].lstrip(os.sep).partition(os.sep)
    begin, _, end = part.partition("*")
    try:
        names = os.listdir(folder or os.sep)
    except OSError:
        return
    for name in sorted(names):
        if name.startswith(begin) and name.endswith(end) and len(name) >= len(begin) + len(end):
            yield from _matches(os.path.join(folder, name, rest) if rest else os.path.join(folder, name))
