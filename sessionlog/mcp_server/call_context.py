"""CallContext: settings, environment and time of one tool call, loaded for each call because a server runs for days."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sessionlog import files
from sessionlog.errors import InvalidPrices, LogNotReadable, Problem
from sessionlog.pricing.book import PriceBook
from sessionlog.settings import Settings, load_settings
from sessionlog.sources.discover import discover, recognise, recognise_folder
from sessionlog.sources.native import holds_events
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import all_sources


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """What a result depends on besides the logs.

    Attributes:
        settings: Environment and config file.
        env: The environment for sources: `SESSIONLOG_DIR` is the folder of our own logs from the settings.
        now: The time of the call.
        allow_paths: A client may name any log, not only those in the folders where agents write.
    """

    settings: Settings
    env: Mapping[str, str]
    now: datetime
    allow_paths: bool = False

    @property
    def zone(self) -> str:
        """The time zone in which days begin."""
        return self.settings.timezone or "local"

    def own_prices(self) -> PriceBook | None:
        """Return the list prices overridden by the user's own; None if the user has none.

        Raises:
            InvalidPrices: One of them cannot be used; the message names the file.
        """
        if not self.settings.prices:
            return None
        try:
            return PriceBook.load(self.settings.prices)
        except InvalidPrices as error:
            raise InvalidPrices(f"{self.settings.config_path}: {error}") from error


def load_context(env: Mapping[str, str] | None, now: datetime, *, allow_paths: bool) -> CallContext:
    """Load the settings for a call; `env` None is the environment of the process.

    Raises:
        InvalidSettings: The config file cannot be used.
        LogNotReadable: It cannot be read.
    """
    settings = load_settings(env)
    sources_env = {**(os.environ if env is None else env), "SESSIONLOG_DIR": settings.session_dir}
    return CallContext(settings=settings, env=sources_env, now=now, allow_paths=allow_paths)


def session_target(text: str | None, ctx: CallContext) -> str | None:
    """Check the `session` argument of a tool and return it: an id, or the path of a log; None stays None.

    A web page that the agent has read may have suggested the path, so only logs in the folders where agents write are
    opened, unless the user allows any path. What is returned is the path that was checked: absolute, and without
    `--allow-paths` that of the log in such a folder, not a link to it, which could lead elsewhere a moment later.

    Raises:
        LogNotReadable: The text is empty, or the path of something else.
    """
    if text is None:
        return None
    if not text.strip():
        raise LogNotReadable("an empty text names no session; leave it out for the newest one")
    found = (os.path.abspath(path) for path in (os.path.expanduser(text), text))  # there may be a folder named ~
    path = next((path for path in found if files.stat_path(path) is not None), None)
    if path is None:
        return text
    if not ctx.allow_paths:
        log = _discovered(path, ctx)
        if log is None:
            raise LogNotReadable(
                f"{text}: not among the logs of agents; `recent_sessions` lists ids and paths, and "
                "`sessionlog mcp --allow-paths` reads logs anywhere"
            )
        return log
    if not _is_log(path, text):
        raise LogNotReadable(f"{text}: no log of a known agent; `recent_sessions` lists ids and paths")
    return path


def _is_log(path: str, text: str) -> bool:
    if not os.path.isfile(path):
        return os.path.isdir(path) and recognise_folder(path) is not None
    log = recognise(path)
    if isinstance(log, Problem) and log.kind == "unreadable":
        raise LogNotReadable(f"{text}: {log.detail}")
    return not isinstance(log, Problem) or holds_events(path)


def _discovered(path: str, ctx: CallContext) -> str | None:
    """Return the log in one of the folders where agents write that a path names, also through a link; None for none."""
    identity = files.identity_of(path)
    logs = (log.path for log in discover(ctx.env, all_sources()) if isinstance(log, Log))
    return next((log for log in logs if files.identity_of(log) == identity), None)
