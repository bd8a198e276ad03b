"""Session ids come from anywhere: five thousand of them are refused or stay in their folder."""

import os
import random
import string

from sessionlog.conversation.stores.file import FileStore
from sessionlog.errors import InvalidSessionId, SessionNotSaved
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.stream import read_events

PIECES = (
    "..", ".", "/", "\\", "\0", "\n", "\t", "\x1b[2J", " ", "~", "$HOME", "%00", "%2e%2e", ":", "*", "?", "|", "<", ">",
    "con", "NUL", "aux", "com1", "LPT9", ".jsonl", ".jsonl.gz", "-", "_", "a", "Z", "0", "s-42", "ä", "中", "\ud800",
    "\u202e", "\u200b", "é", "e\u0301", "ﬁ", "İ", "/etc/passwd", "../../escaped", "C:\\x", "\\\\server\\share",
    "x" * 60, "9" * 128,
)  # fmt: skip


def test_p12_no_id_leaves_the_folder(memory, seed):
    """Whatever an id is made of, it is refused at once, or its file is in the folder and readable by its name."""
    chance = random.Random(seed)
    folder = memory / "outer" / "sessions"
    accepted = set()
    for _ in range(5_000):
        pieces = PIECES if chance.random() < 0.7 else string.ascii_letters + string.digits + "._-"
        session_id = "".join(chance.choice(pieces) for _ in range(chance.randint(0, 6)))
        try:
            log = SessionLogger(folder, session_id, work_dir="/w", notify=lambda text: None)
        except InvalidSessionId:
            continue
        recorded = log.emit("tool.call", {})
        log.close()
        if recorded:  # else it differs from another one in case only
            accepted.add(f"{session_id}.jsonl")
            assert os.path.dirname(os.path.realpath(log.path)) == str(folder)
            assert list(read_events(str(folder / f"{session_id}.jsonl")))
    assert len(accepted) > 100
    assert set(os.listdir(folder)) == accepted
    assert [path.name for path in memory.rglob("*") if path.is_file() and path.parent != folder] == []
    assert len({name.casefold() for name in accepted}) == len(accepted)


def test_p12_no_id_leaves_a_store(memory, seed):
    """A store of files saves, loads and deletes under an id in its folder, or refuses it."""
    chance = random.Random(seed)
    outside = FileStore(memory / "outer")
    outside.save("outside", {"messages": ["not yours"]})
    store = FileStore(memory / "outer" / "sessions")
    pieces = (*PIECES, "..", "/", "../outside", "outside", ".json")
    accepted = 0
    for _ in range(2_000):
        session_id = "".join(chance.choice(pieces) for _ in range(chance.randint(0, 4)))
        try:
            assert store.load(session_id) is None
            store.save(session_id, {"messages": []})
        except (InvalidSessionId, SessionNotSaved):
            continue
        accepted += 1
        assert os.path.isfile(memory / "outer" / "sessions" / f"{session_id}.json")
        assert store.delete(session_id)
    assert accepted > 50
    assert outside.load("outside") == {"messages": ["not yours"]}
    assert sorted(name for name in os.listdir(memory / "outer") if not name.startswith(".")) == [
        "outside.json",
        "sessions",
    ]
    assert os.listdir(memory) == ["outer"]
