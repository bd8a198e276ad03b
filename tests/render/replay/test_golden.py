"""Whole replays, compared with the text they are meant to be. `SESSIONLOG_UPDATE_GOLDEN=1` writes them anew."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sessionlog.analytics.session_totals import totals_alone
from sessionlog.reader.stream import read_events
from sessionlog.render.escape import terminal
from sessionlog.render.replay import Paint, fold_replay, lay_out, replay
from sessionlog.render.replay.lines import View
from sessionlog.sources.find import log_at

LOGS = Path(__file__).parents[3] / "testdata" / "replay"
NAMES = sorted(path.stem for path in LOGS.glob("*.jsonl"))


def compare(text, name):
    """Compare with a golden file, or write it."""
    path = LOGS / name
    if os.environ.get("SESSIONLOG_UPDATE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_replay_is_the_text_it_was(name, monkeypatch):
    """The plain text of each lesson is stable."""
    monkeypatch.chdir(LOGS)  # damage is named by the path that was given
    compare("".join(f"{line}\n" for line in replay(f"{name}.jsonl")), f"{name}.txt")


@pytest.mark.parametrize("name", ["story", "long-texts"])
def test_everything_can_be_shown(name):
    """All messages, whole: the text for somebody who looks for one word."""
    lines = replay(str(LOGS / f"{name}.jsonl"), full=True, all_messages=True)
    compare("".join(f"{line}\n" for line in lines), f"{name}.everything.txt")


@pytest.mark.parametrize(("name", "width"), [("story", 100), ("story", 60), ("harness", 80), ("broken-stream", 80)])
def test_a_terminal_sees_columns(name, width):
    """At a terminal numbers are short, figures stand at the right edge and texts are wrapped."""
    view = View(width=width, exact=False, now=datetime(2026, 11, 22, tzinfo=UTC), home="/home/ada")
    path = str(LOGS / f"{name}.jsonl")
    blocks = fold_replay(read_events(path), session_id=name, totals=lambda: totals_alone(log_at(path)))
    text = "".join(f"{Paint()(line)}\n" for lines in lay_out(blocks, view) for line in lines)
    compare(text, f"{name}.{width}.txt")


@pytest.mark.parametrize("name", NAMES)
def test_no_replay_can_act_on_a_terminal(name):
    """Every character of every lesson, the hostile one among them, is harmless after the replay."""
    text = "\n".join(replay(str(LOGS / f"{name}.jsonl"), full=True, all_messages=True))
    assert terminal(text, newline=True, tab=True) == text


def test_nothing_of_the_hostile_log_is_hidden():
    """What would have acted or hidden is shown by its code."""
    text = "\n".join(replay(str(LOGS / "hostile.jsonl")))
    for sign in (r"\x1b", r"\x07", r"\x9b", r"\x00", r"\x7f", r"\u202e", r"\u200b", r"\U000e0041", "[bold]", ":smile:"):
        assert sign in text
