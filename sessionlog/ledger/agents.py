"""Agents: what a report on sources shows of each, kept with the snapshot, so that no source is imported for it."""

from __future__ import annotations

from dataclasses import dataclass

from sessionlog.ledger.identity import path_of, stored_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

    from sessionlog.sources.protocol import Source

_SEPARATOR = "\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent whose logs can be read.

    Attributes:
        source: Its source's id.
        title: Its name.
        places: The folders and files where its logs may be, in the order of the search.
        kept_days: After how many days it deletes its logs; None if it keeps them, or unknown.
        kept_by: The setting that decides it; None without one.
        caveat: What its logs lack; "" if they lack nothing.
    """

    source: str
    title: str
    places: tuple[str, ...]
    kept_days: int | None = None
    kept_by: str | None = None
    caveat: str = ""


def describe_agent(source: Source, env: Mapping[str, str]) -> Agent:
    """Return the description that a source gives of its agent in an environment."""
    kept = source.retention(env)
    return Agent(
        source=source.id,
        title=source.title,
        places=tuple(dict.fromkeys(source.locate(env))),
        kept_days=None if kept is None else kept.days,
        kept_by=None if kept is None else kept.setting or None,
        caveat=source.caveat,
    )


def write_agents(connection: sqlite3.Connection, agents: Iterable[Agent]) -> None:
    """Store agents in place of those that are stored."""
    connection.execute("DELETE FROM agents")
    connection.executemany(
        "INSERT INTO agents (source, title, places, kept_days, kept_by, caveat) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (one.source, one.title, stored_path(_SEPARATOR.join(one.places)), one.kept_days, one.kept_by, one.caveat)
            for one in agents
        ],
    )


def read_agents(connection: sqlite3.Connection) -> list[Agent]:
    """Return the stored agents, in the order of the sources."""
    rows = connection.execute("SELECT source, title, places, kept_days, kept_by, caveat FROM agents ORDER BY n")
    return [
        Agent(
            source=source, title=title, places=tuple(filter(None, path_of(places).split(_SEPARATOR))),
            kept_days=kept_days, kept_by=kept_by, caveat=caveat,
        )
        for source, title, places, kept_days, kept_by, caveat in rows
    ]  # fmt: skip
