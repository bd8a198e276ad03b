"""What a session is made of, looked at before it begins: a wrong part is named at once, and not by the first turn."""

from __future__ import annotations

from typing import Any

from sessionlog.conversation.history.settings import ConversationSettings

_STORE = ("save", "load", "delete", "list_sessions", "exists")
_LOGGER = ("emit", "is_new", "end", "path", "session_id")


def check_parts(
    *, session_id: Any = None, system: Any = None, store: Any = None, logger: Any = None, settings: Any = None
) -> None:
    """Demand that each part is what it is meant to be; None is left out.

    Raises:
        TypeError: One is something else; the message says what it is, and what is meant.
        ValueError: The id is empty.
    """
    if not isinstance(session_id, str | None):
        raise TypeError(f"session_id is {_named(session_id)}; it is a text; a store is given as store=…")
    if session_id == "":
        raise ValueError("session_id is empty; leave it out, and the session gets a new one")
    if not isinstance(system, str | None):
        raise TypeError(f"system is {_named(system)}; it is a text")
    if store is not None and (isinstance(store, type) or not _has(store, _STORE)):
        raise TypeError(f"store is {_named(store)}; it has {', '.join(_STORE)}, as FileStore('a folder') does")
    if logger is not None and (isinstance(logger, type) or not _has(logger, _LOGGER)):
        raise TypeError(f"logger is {_named(logger)}; it is a SessionLogger: logger=SessionLogger()")
    if not isinstance(settings, ConversationSettings | None):
        raise TypeError(f"settings is {_named(settings)}; it is ConversationSettings(...)")


def _has(value: Any, names: tuple[str, ...]) -> bool:
    return all(hasattr(value, name) for name in names)


def _named(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
