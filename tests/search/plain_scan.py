"""A plain scan of logs for words, which knows nothing of the index: it reads the events that a replay shows."""

import os
import re

from sessionlog.events.envelope import Event
from sessionlog.search.find import Place
from sessionlog.sources.discover import discover
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import all_sources

_WORD = re.compile(r"[a-z0-9]+")


def place_of(env, folder):
    """The ledger and index of a test's own."""
    return Place(ledger=os.path.join(folder, "ledger.sqlite3"), env=env, tz="UTC")


def logs_of(env):
    """Every log that is found."""
    return [one for one in discover(env, all_sources()) if isinstance(one, Log)]


def texts_of(log):
    """(session, text) of all that a log's replay has: prompts, answers, reasoning, calls and outputs."""
    for session in log.source.name_sessions(log.path):
        for event in log.source.read(log.path, session):
            if isinstance(event, Event) and isinstance(event.data, dict):
                for text in _texts(event):
                    yield session.split("/")[0], text


def _texts(event):
    data = event.data
    if event.type == "llm.request":
        for message in data.get("messages") or []:
            if isinstance(message, dict) and message.get("role") == "user":
                yield from _strings(message.get("content"))
    elif event.type == "llm.response":
        yield from _strings([data.get("content"), data.get("reasoning")])
        for call in data.get("tool_calls") or []:
            yield from _strings(call.get("arguments") if isinstance(call, dict) else None)
    elif event.type == "tool.call":
        yield from _strings([data.get("input"), data.get("output")])


def _strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            if key not in ("type", "id", "tool_use_id", "data", "media_type", "url", "image_url"):
                yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def words_of(text):
    """The ASCII words of a text, whole: those beside letters of other alphabets are left out."""
    return {
        match[0]
        for match in _WORD.finditer(text.lower())
        if not any(
            char and not char.isascii()
            for char in (text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1])
        )
    }
