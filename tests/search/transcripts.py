"""Small Claude Code transcripts in a home of a test's own."""

import json
import os
import time
import uuid
from pathlib import Path

from sessionlog.search.find import Place, Question, find
from sessionlog.search.query import parse_query


class Home:
    """A home with transcripts, and the ledger and index of it."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.logs = self.folder / ".claude" / "projects" / "-src-api"
        self.logs.mkdir(parents=True)
        self.env = {"HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder / "data")}
        self.place = Place(ledger=str(self.folder / "ledger.sqlite3"), env=self.env, tz="UTC")
        self.index = self.folder / "ledger-search.sqlite3"

    def path(self, number):
        """The log of a session."""
        return self.logs / f"{session_id(number)}.jsonl"

    def write(self, number, *rows, mode="a", end="\n", ago=10):
        """Append rows to the log of a session, as if it were some seconds ago."""
        path = self.path(number)
        with path.open(mode, encoding="utf-8", errors="surrogatepass") as file:
            file.write("".join(json.dumps({**row, "sessionId": session_id(number)}) + end for row in rows))
        self.age(path, ago)

    @staticmethod
    def age(path, seconds=10):
        """Date a file back."""
        os.utime(path, (time.time() - seconds, time.time() - seconds))

    def find(self, *words, place=None, **settings):
        """Search."""
        regex = settings.pop("regex", None)
        return find(Question(query=parse_query(words, regex=regex), **settings), place or self.place)

    def texts(self, *words, **settings):
        """The texts of the hits, without marks."""
        return [hit.item.text for hit in self.find(*words, **settings).hits]


def session_id(number):
    """The id of a session."""
    return f"{number:08}-2222-4222-8222-{number:012}"


def row(kind, content, minute=0, **more):
    """A row of a transcript."""
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {
            "id": f"msg_{uuid.uuid4()}",
            "model": "claude-opus-4-5",
            "usage": {"input_tokens": 5, "output_tokens": 5},
        }
        more["requestId"] = f"req_{uuid.uuid4()}"
    stamp = f"2026-11-20T10:{minute:02}:00.000Z"
    return {
        "parentUuid": None, "isSidechain": False, "cwd": "/src/api", "gitBranch": "main", "version": "2.1.90",
        "type": kind, "message": message, "uuid": str(uuid.uuid4()), "timestamp": stamp, **more,
    }  # fmt: skip


def said(text, minute=0):
    """A prompt."""
    return row("user", text, minute)


def answered(text, minute=0):
    """An answer."""
    return row("assistant", [{"type": "text", "text": text}], minute)


def called(call_id, tool, arguments, minute=0):
    """A tool call."""
    return row("assistant", [{"type": "tool_use", "id": call_id, "name": tool, "input": arguments}], minute)


def returned(call_id, output, minute=0, *, failed=False):
    """Its result."""
    return row("user", [{"type": "tool_result", "tool_use_id": call_id, "content": output, "is_error": failed}], minute)
