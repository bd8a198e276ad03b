"""Bounds: a context document that does not fill the window that is asked about, however long its session is.

What is left out is summed up or said, so that parts still sum to the total.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

POINTS = 100
"""Points of the growth, and compactions."""
PARTS = 20
"""Parts of one kind; the smaller ones are one together."""
NAME = 200
"""Characters of a name."""

Json = Any


def bounded(document: dict[str, Json]) -> tuple[dict[str, Json], list[str]]:
    """Return a context document in bounds, and sentences that say what was left out."""
    made, notes = dict(document), []
    growth, compactions = document["growth"], document["compactions"]
    made["growth"], made["compactions"] = _thinned(growth), compactions[-POINTS:]
    if len(growth) > POINTS:
        notes.append(f"growth: {POINTS} of {len(growth)} requests, evenly spread")
    if len(compactions) > POINTS:
        notes.append(f"compactions: the last {POINTS} of {len(compactions)}")
    made["parts"] = [
        part for kind, parts in groupby(document["parts"], key=lambda part: part["kind"]) for part in _few(kind, parts)
    ]
    if len(made["parts"]) < len(document["parts"]):
        notes.append(f"parts: the {PARTS} largest of each kind, and the sum of the others")
    for name in ("parts", "largest", "repeats"):
        made[name] = [{**one, "name": _short(one["name"])} for one in made[name]]
    return made, notes


def _few(kind: str, parts: Any) -> list[Json]:
    """The largest parts of a kind, which come first, and one for the others."""
    listed = list(parts)
    if len(listed) <= PARTS + 1:
        return listed
    rest = listed[PARTS:]
    sums = {key: sum(part[key] for part in rest) for key in ("tokens", "count", "share")}
    return [*listed[:PARTS], {"kind": kind, "name": f"{len(rest)} more", **sums}]


def _thinned(points: list[Json]) -> list[Json]:
    """At most `POINTS` of them, the first and the last among them."""
    if len(points) <= POINTS:
        return points
    last = len(points) - 1
    return [points[last * place // (POINTS - 1)] for place in range(POINTS)]


def _short(name: str) -> str:
    return name if len(name) <= NAME else f"{name[: NAME - 1]}\N{HORIZONTAL ELLIPSIS}"
