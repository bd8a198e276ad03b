"""The number of requests of a whole session, from the ledger.

One log is not enough: sub-agents have their own logs, an agent may begin a new file for a session, and a fork repeats
requests that another session counts. Without a ledger the number is unknown, because a first scan takes long.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping

from sessionlog.analytics.status.logs import ask_status
from sessionlog.analytics.status.question import StatusQuestion
from sessionlog.errors import SessionLogError


def count_session_requests(
    session: str, path: str | None = None, *, env: Mapping[str, str], ledger: str | None
) -> int | None:
    """Return the requests of a session as its status counts them; None if unknown.

    Args:
        session: The session's id.
        path: A log of the session, tried before the id, because several agents may use the same id.
        env: The environment, by which the folders of agents' logs are found.
        ledger: The ledger's file.
    """
    if ledger is None or not os.path.exists(ledger):
        return None
    for target in [session] if path is None else [path, session]:
        try:
            status, _ = ask_status(StatusQuestion(target=target), env=env, ledger=ledger)
        except (SessionLogError, OSError, sqlite3.Error, ValueError, TypeError):  # a damaged row may be anything
            continue
        document = status.to_dict()
        found, used = document["session"], document["usage"]["session"]
        if used is not None and found is not None and found["id"] == session:
            return int(used["requests"])
    return None
