"""All targets by name."""

import os
from collections.abc import Sequence

from tests.reliability.fuzz.homes import home_targets
from tests.reliability.fuzz.laws import Target
from tests.reliability.fuzz.parsers import parser_targets


def all_targets() -> Sequence[Target]:
    """Return the targets that have something to try here."""
    return [
        target for target in (*parser_targets(), *home_targets()) if not target.needs or os.environ.get(target.needs)
    ]


def target_named(name: str) -> Target:
    """Return one target."""
    return next(target for target in all_targets() if target.name == name)
