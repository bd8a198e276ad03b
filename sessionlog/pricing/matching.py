"""Clauses: how a price list recognises a provider or a model by name.

A clause is one of {"equals": t}, {"starts_with": t}, {"ends_with": t}, {"contains": t}, {"regex": r}, {"or":
[clauses]}, {"and": [clauses]}. Names are compared in lower case; the list's texts already are, and its regexes search
lower-case names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Clause = Mapping[str, Any]


def matches(clause: Clause, name: str) -> bool:
    """Whether a clause recognises a lower-case name."""
    [(kind, value)] = clause.items()
    match kind:
        case "equals":
            return name == str(value)
        case "starts_with":
            return name.startswith(value)
        case "ends_with":
            return name.endswith(value)
        case "contains":
            return value in name
        case "regex":
            return re.search(value, name) is not None
        case "or":
            return any(matches(part, name) for part in value)
        case "and":
            return all(matches(part, name) for part in value)
        case _:
            raise ValueError(f"a price list with the clause {kind!r} is newer than this sessionlog")


def names_exactly(clause: Clause, name: str) -> bool:
    """Whether a clause lists a name literally, so that the match cannot be another model with a similar name."""
    [(kind, value)] = clause.items()
    if kind == "equals":
        return name == str(value)
    return kind == "or" and any(names_exactly(part, name) for part in value)
