"""Surroundings: the settings, environment and present of one call; read anew each time, for a server lives for days."""

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
class Surroundings:
    """What an answer depends on besides the logs.

    Attributes:
        settings: Environment and config file.
        env: The environment as sources see it: with the folder of our own logs that the settings name.
        now: The present.
        allow_paths: A client may name logs anywhere, not only where agents write.
    """

    settings: Settings
    env: Mapping[str, str]
    now: datetime
    allow_paths: bool = False

    @property
    def zone(self) -> str:
        """Whose days."""
        return self.settings.timezone or "local"

    def own_prices(self) -> PriceBook | None:
        """The list prices with the user's own above them; None if there are no others than the list's.

        Raises:
            InvalidPrices: One of them cannot be used; the message names the file.
        """
        if not self.settings.prices:
            return None
        try:
            return PriceBook.load(self.settings.prices)
        except InvalidPrices as error:
            raise InvalidPrices(f"{self.settings.config_path}: {error}") from error


def look_around(env: Mapping[str, str] | None, now: datetime, *, allow_paths: bool) -> Surroundings:
    """Return the surroundings of a call; the environment is the process's when None.

    Raises:
        InvalidSettings: The config file cannot be used.
        LogNotReadable: It cannot be read.
    """
    settings = load_settings(env)
    surroundings = {**(os.environ if env is None else env), "SESSIONLOG_DIR": settings.session_dir}
    return Surroundings(settings=settings, env=surroundings, now=now, allow_paths=allow_paths)


def session_named(text: str | None, where: Surroundings) -> str | None:
    """Return what names a session: an id, or the path of a log; no other file or folder is looked into.

    What an agent asks for may have come from a page that it read, so only logs where agents write are read, unless the
    user allows any path.

    Raises:
        LogNotReadable: It is the path of something else, or nothing at all.
    """
    if text is None:
        return None
    if not text.strip():
        raise LogNotReadable("an empty text names no session; leave it out for the newest one")
    path = os.path.expanduser(text)
    if files.stat_path(path) is None:
        return text
    if not where.allow_paths:
        if not _is_found(path, where):
            raise LogNotReadable(
                f"{text}: not among the logs of agents; `recent_sessions` lists ids and paths, and "
                "`sessionlog mcp --allow-paths` reads logs anywhere"
            )
        return path
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


def _is_found(path: str, where: Surroundings) -> bool:
    """Whether a path is a log in one of the places where agents write, under whatever name."""
    identity = files.identity_of(path)
    logs = (log.path for log in discover(where.env, all_sources()) if isinstance(log, Log))
    return any(identity == files.identity_of(log) for log in logs)
