"""Session requests: how many a whole session has, which one of its logs cannot say.

A session's sub-agents have logs of their own, an agent may begin a new file for it, and a fork repeats what another
session counts already. The ledger knows them all; where there is none yet, nothing is asked: a first scan takes long.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping

from sessionlog.analytics.status.question import StatusQuestion
from sessionlog.analytics.status.reader import ask_status
from sessionlog.errors import SessionLogError


def count_session_requests(target: str, *, env: Mapping[str, str], ledger: str | None) -> int | None:
    """Return the requests of a session as its status counts them; None where that is not known.

    Args:
        target: The path of a log, or the session's id.
        env: The environment, which says where agents write.
        ledger: The ledger's file.
    """
    if ledger is None or not os.path.exists(ledger):
        return None
    try:
        status, _ = ask_status(StatusQuestion(target=target), env=env, ledger=ledger)
    except (SessionLogError, OSError, sqlite3.Error, ValueError, TypeError):  # a damaged row may be anything
        return None
    used = status.to_dict()["usage"]["session"]
    return None if used is None else int(used["requests"])
