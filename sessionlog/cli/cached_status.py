"""The cached path of `sessionlog status`, which agents run after every step (see `cached_path`).

Of config.toml it supports the budgets, as a status shows them; it declines any other setting.
"""

from __future__ import annotations

import os
import sys
from time import time_ns

from sessionlog.analytics.status.answer import answer
from sessionlog.places import config_file, ledger_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any


def answer_status(
    connection: sqlite3.Connection, settings: Mapping[str, Any]
) -> tuple[dict[str, Any] | str, list[str]] | None:
    """Return the document or the line, and no notes; None if the full path has to answer."""
    session, everything, as_line = settings["session"], settings["everything"], settings["as_line"]
    if (session is not None and everything) or (as_line and _has_colours()):
        return None
    rules = _rules(config_file(os.environ))
    if rules is None:
        return None
    statusline_input = None
    if as_line and not (session or everything):
        from sessionlog.cli.statusline_input import read_statusline_input

        statusline_input = read_statusline_input(keep=True)

    def query(sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return connection.execute(sql, parameters).fetchall()

    location = None
    if rules:
        from sessionlog.analytics.budgets.states import FUNCTIONS
        from sessionlog.analytics.status.own import LedgerLocation

        location = LedgerLocation(settings["ledger"] or ledger_file(os.environ), os.environ)
        for name, function in FUNCTIONS.items():
            connection.create_function(name, 1, function, deterministic=True)
    now_ns = time_ns()
    found = answer(
        query, now_ns=now_ns, target=session, statusline_input=statusline_input, everything=everything, rules=rules,
        location=location, with_typical=not as_line,
    )  # fmt: skip
    if found is None:
        return None
    document = found[0].to_dict()
    if not as_line:
        return document, []
    from sessionlog.analytics.status.statusline_input import with_statusline_input
    from sessionlog.cli.statusline_input import discard_kept
    from sessionlog.render.status_line import line_width, status_line

    document = with_statusline_input(document, statusline_input, now_ns)
    pieces = status_line(document, now_ns=now_ns, width=line_width(sys.stdout))
    discard_kept()
    return "".join([text for text, _ in pieces]).rstrip() + "\n", []


def _has_colours() -> bool:
    from sessionlog.render.stream import plain_width

    return plain_width(sys.stdout) is None


def _rules(path: str) -> tuple[Any, ...] | None:
    """Return the budgets of a config file; None if it has other settings.

    Raises:
        ValueError: It is no TOML, or a budget is invalid.
    """
    if not os.path.exists(path):
        return ()
    from sessionlog.analytics.budgets.rules import parse_budgets
    from sessionlog.files import read_small

    text = (read_small(path) or b"").decode()
    import tomllib

    config = tomllib.loads(text)
    if config.keys() - {"budgets", "guard"} or not isinstance(config.get("guard", {}), dict):
        return None
    return parse_budgets(config.get("budgets", {}))
