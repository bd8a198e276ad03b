"""The warm way of `sessionlog status`, which agents take after every step (see `warm`).

Of the settings it understands the budgets, for whoever has some wants to see them here; others are declined.
"""

from __future__ import annotations

import os
import sys
from time import time_ns

from sessionlog.analytics.status.answer import answer
from sessionlog.places import config_file, ledger_file

TYPE_CHECKING = False  # typing costs a start-up 3 ms
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any


def answer_status(
    connection: sqlite3.Connection, settings: Mapping[str, Any]
) -> tuple[dict[str, Any] | str, list[str]] | None:
    """Return the document or the line, and no notes; None where the whole way has to answer."""
    session, everything, as_line = settings["session"], settings["everything"], settings["as_line"]
    if (session is not None) + settings["latest"] + everything > 1 or (as_line and _has_colours()):
        return None
    rules = _rules(config_file(os.environ))
    if rules is None:
        return None
    fed = None
    if as_line and not (session or settings["latest"] or everything):
        from sessionlog.cli.fed import fed_on_stdin  # noqa: PLC0415 - JSON is fed nothing

        fed = fed_on_stdin(keep=True)

    def query(sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return connection.execute(sql, parameters).fetchall()

    place = None
    if rules:
        from sessionlog.analytics.budgets.states import FUNCTIONS  # noqa: PLC0415 - for those who have budgets
        from sessionlog.analytics.status.own import Place  # noqa: PLC0415 - as above

        place = Place(settings["ledger"] or ledger_file(os.environ), os.environ)
        for name, function in FUNCTIONS.items():
            connection.create_function(name, 1, function, deterministic=True)
    now_ns = time_ns()
    found = answer(
        query, now_ns=now_ns, target=session, fed=fed, everything=everything, rules=rules, place=place,
        with_typical=not as_line,
    )  # fmt: skip
    if found is None:
        return None
    document = found[0].to_dict()
    if not as_line:
        return document, []
    from sessionlog.analytics.status.fed import with_fed  # noqa: PLC0415 - as above
    from sessionlog.cli.fed import forget  # noqa: PLC0415 - as above
    from sessionlog.render.status_line import line_width, status_line  # noqa: PLC0415 - as above

    pieces = status_line(with_fed(document, fed, now_ns), now_ns=now_ns, width=line_width(sys.stdout))
    forget()
    return "".join([text for text, _ in pieces]).rstrip() + "\n", []


def _has_colours() -> bool:
    from sessionlog.render.stream import plain_width  # noqa: PLC0415 - JSON has none

    return plain_width(sys.stdout) is None


def _rules(path: str) -> tuple[Any, ...] | None:
    """The user's budgets; None where there are other settings, or anything is wrong with them."""
    if not os.path.exists(path):
        return ()
    from sessionlog.analytics.budgets.rules import parse_budgets  # noqa: PLC0415 - for those who have settings
    from sessionlog.cli.plain_toml import read_plain  # noqa: PLC0415 - as above
    from sessionlog.files import read_small  # noqa: PLC0415 - as above

    text = (read_small(path) or b"").decode()
    config = read_plain(text)
    if config is None:
        import tomllib  # noqa: PLC0415 - 20 ms, for what is not plain

        config = tomllib.loads(text)
    return None if config.keys() - {"budgets"} else parse_budgets(config.get("budgets", {}))
