"""The Python face: a path in, lines out."""

from pathlib import Path

import pytest

from sessionlog.errors import InvalidWindow, LogNotReadable
from sessionlog.render.replay import replay, selector

LOGS = Path(__file__).parents[3] / "testdata" / "replay"
STORY = str(LOGS / "story.jsonl")


def test_only_some_types_are_shown():
    """A selection shows those blocks and nothing else."""
    lines = list(replay(STORY, only=["tool.call"]))
    assert [line for line in lines if line.startswith("  ⚙")] == [
        "  ⚙ read  12 ms · 31 lines",
        "  ⚙ bash  ✘ exit 1 · 3100 ms",
    ]
    assert not [line for line in lines if line.startswith(("━━", "you", "◂"))]


def test_types_are_chosen_by_pattern():
    """`llm.*` is every type that begins so; quiet ones are named by it too."""
    assert selector(()) is None
    chosen = selector(["llm.*", "progress"])
    assert [kind for kind in ("llm.delta", "progress", "tool.call") if chosen(kind)] == ["llm.delta", "progress"]
    assert "· progress  thinking ..." in list(replay(STORY, only=["progress"]))
    assert [line for line in replay(STORY, only=["llm.*"]) if line.startswith("· llm.delta")] == [
        "· llm.delta  I'll look"
    ]


def test_damage_is_told_whatever_is_chosen():
    """A selection must not hide that the log is damaged."""
    lines = list(replay(str(LOGS / "unknown-and-damaged.jsonl"), only=["tool.call"]))
    assert [line for line in lines if "not_json" in line]


def test_the_zone_is_the_callers():
    """UTC by default, so that a text is the same everywhere."""
    assert "2026-11-21 09:58:00 UTC" in next(replay(STORY))
    assert "2026-11-21 10:58:00 CET" in next(replay(STORY, tz="Europe/Berlin"))


def test_long_texts_are_cut_where_the_caller_says():
    """`cut` is the characters of a text; `full` knows no limit."""
    path = str(LOGS / "long-texts.jsonl")
    assert "      … +3,990 characters (--full)" in list(replay(path, cut=10))
    assert not [line for line in replay(path, full=True) if "(--full)" in line]


def test_lines_are_wrapped_where_the_caller_says():
    """A width wraps, and changes no number."""
    lines = list(replay(STORY, width=80))
    assert max(map(len, lines)) <= 80
    assert any("$0.0310275" in line for line in lines)


def test_wrong_calls_raise():
    """A path that is no log, a zone that is none."""
    with pytest.raises(LogNotReadable):
        list(replay(str(LOGS / "nowhere.jsonl")))
    with pytest.raises(InvalidWindow):
        list(replay(STORY, tz="Mars/Olympus"))


def test_a_path_may_be_a_path():
    """Whatever names a file is a path."""
    assert list(replay(Path(STORY))) == list(replay(STORY))


def test_an_empty_log_is_an_empty_replay(tmp_path):
    """There is nothing to say."""
    path = tmp_path / "empty.jsonl"
    path.write_bytes(b"")
    assert list(replay(str(path))) == []
