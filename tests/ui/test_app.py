"""The terminal application, driven by textual's pilot over real logs."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading

import pytest

pytest.importorskip("textual", reason="the terminal application needs sessionlog[tui]")

from textual.events import Key

from sessionlog.cli.reporting import report_context
from sessionlog.cli.ui import LedgerQueries
from sessionlog.ui import views
from sessionlog.ui.app import SessionlogApp
from tests.security.commands import STORY

LONG_AGO = 1_700_000_000
HOSTILE = "[bold]x[/] \x1b]0;title\x07 \u202egnp"


@pytest.fixture
def app(tmp_path, monkeypatch):
    """The application over two sessions of our own, one with a hostile prompt."""
    logs = tmp_path / "logs"
    logs.mkdir()
    shutil.copy(STORY, logs / "story.jsonl")
    texts = [
        ("session.start", {"v": 1, "model": "m[red]", "provider": "p", "prompt": HOSTILE}),
        ("llm.request", {"messages": [{"role": "user", "content": HOSTILE}]}),
        ("llm.response", {"content": HOSTILE, "usage": {"input": 5, "output": 7}}),
    ]
    lines = [
        {"session_id": "evil", "seq": seq, "type": kind, "ts": "2026-11-20T10:00:00Z", "data": data}
        for seq, (kind, data) in enumerate(texts)
    ]
    (logs / "evil.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("SESSIONLOG_DIR", str(logs))
    return SessionlogApp(LedgerQueries(report_context(None, tz="UTC")))


def drive(app, steps, size=(80, 24)):
    """Run the application on a screen of this size, and `steps(pilot)` in it."""

    async def run():
        async with app.run_test(size=size) as pilot:
            await steps(pilot)

    asyncio.run(run())


async def until(pilot, condition):
    """Wait until a condition holds, for threads to finish."""
    for _ in range(500):
        await pilot.pause(0.01)
        if condition():
            return
    raise AssertionError(screen(pilot.app))


def screen(app):
    """The text on the screen."""
    return "\n".join("".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips())


def test_sessions_are_searched_and_replayed(app):
    """The list narrows as words are typed, Enter replays, and Escape returns to the same session."""

    async def steps(pilot):
        await until(pilot, lambda: "2 sessions" in screen(app))
        await pilot.press("slash", *"gnp", "enter")
        await until(pilot, lambda: "1 of 2 sessions" in screen(app))
        assert app.sessions.session.session == "evil"
        await pilot.press("enter")
        await until(pilot, lambda: "you ▸" in screen(app))
        await pilot.press("escape")
        await until(pilot, lambda: "1 of 2 sessions" in screen(app))
        assert app.sessions.session.session == "evil"

    drive(app, steps)


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
def test_text_of_logs_is_escaped(app, size):
    """Markup and control sequences of a log are shown as text in the list and in the replay."""

    async def steps(pilot):
        await until(pilot, lambda: "2 sessions" in screen(app))
        assert not {"\x1b", "\u202e"} & set(screen(app))
        if app.sessions.session.session != "evil":
            await pilot.press("end")
        await pilot.press("enter")
        await until(pilot, lambda: "[bold]x[/] \\x1b]0;title\\x07" in screen(app))
        assert not {"\x1b", "\u202e"} & set(screen(app))

    drive(app, steps, size)


def test_every_view_opens_and_names_its_keys(app):
    """The keys 1 to 4 show the views, each with its keys in the last line."""

    async def steps(pilot):
        for key, shown in (("2", "by day · 7d"), ("3", "running"), ("4", "No budgets are set"), ("1", "2 sessions")):
            await pilot.press(key)
            await until(pilot, lambda shown=shown: shown in screen(app))
            last = screen(app)
            assert [key for key, does in app.shown.keys if f"{key} {does}" not in last] == []
            assert "q quit" in last

    drive(app, steps)


def test_hidden_columns_name_no_option_of_the_command_line(app):
    """Here only a wider terminal shows them."""

    async def steps(pilot):
        for keys in ("1", ("2", *["right"] * 4)):  # the logs are older than the usual week
            await pilot.press(*keys)
            await until(pilot, lambda: "hidden columns" in screen(app))
            assert "--wide" not in screen(app)

    drive(app, steps)


def test_usage_is_narrowed_and_widened(app):
    """Enter shows a row by its next key, the arrows change the period, Backspace goes back."""

    async def steps(pilot):
        await pilot.press("2", "right", "right", "right", "right", "m")
        await until(pilot, lambda: "by model · all time" in screen(app) and "m[red]" in screen(app))
        await pilot.press("end", "enter")
        await until(pilot, lambda: "by project · model " in screen(app))
        await pilot.press("backspace")
        await until(pilot, lambda: "by model · all time" in screen(app))

    drive(app, steps)


def test_of_many_days_the_newest_are_shown(app, monkeypatch):
    """Enter on one of them narrows to that day."""
    monkeypatch.setattr(views, "_ROWS", 1)

    async def steps(pilot):
        await pilot.press("2", "right", "right", "right", "right", "d")
        await until(pilot, lambda: "by day · all time" in screen(app) and "1 more row (--limit)" in screen(app))
        assert "21 Nov" in screen(app)
        await pilot.press("enter")
        await until(pilot, lambda: "2026-11-21" in screen(app))

    drive(app, steps)


def test_keys_that_come_at_once_belong_to_the_view_that_they_open(app):
    """A slow connection brings several keys in one piece: the second is not for the view before."""

    async def steps(pilot):
        await until(pilot, lambda: "2 sessions" in screen(app))
        for key in ("2", "right", "right", "right", "right", "m"):
            app.post_message(Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: "by model · all time" in screen(app))

    drive(app, steps)


def test_resizes_keep_the_place(app):
    """After forty sizes in a row the session under the cursor is the same, and the lines fit the last size."""

    async def steps(pilot):
        await until(pilot, lambda: "2 sessions" in screen(app))
        await pilot.press("down")
        before = app.sessions.session.session
        for step in range(40):
            await pilot.resize_terminal(30 + step * 4, 5 + step)
        await pilot.resize_terminal(100, 30)
        await until(pilot, lambda: "2 sessions" in screen(app))
        assert app.sessions.session.session == before

    drive(app, steps)


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("view", ["sessions", "replay"])
def test_a_session_is_opened_as_a_page(app, monkeypatch, tmp_path, view, is_open):
    """The page is written into a private folder; without a browser its path is copied and shown."""
    opened, copied = [], []
    monkeypatch.setattr(views, "open_in_browser", lambda path: opened.append(path) or is_open)
    monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def steps(pilot):
        await until(pilot, lambda: "2 sessions" in screen(app))
        if view == "replay":
            await pilot.press("enter")
            await until(pilot, lambda: "lines" in screen(app))
        await pilot.pause(0.3)  # the first size is laid out again, with its own sentence
        await pilot.press("o")
        await until(pilot, lambda: "opened in the browser: " in screen(app) or "copied: open it" in screen(app))

    drive(app, steps, (200, 24))
    [page] = list(tmp_path.glob("sessionlog-page-*/*.html"))
    assert opened == [str(page)]
    assert copied == ([] if is_open else opened)
    assert page.parent.stat().st_mode & 0o077 == 0
    assert page.read_text("utf-8").startswith("<!doctype html>")


TURN = """
import json, sys
with open(sys.argv[1], "ab") as log:
    for seq in range(int(sys.argv[2]), int(sys.argv[3])):
        content = f"TURN {seq} " + "more text " * 40
        for kind, data in (
            ("llm.request", {"messages": [{"role": "user", "content": content}]}),
            ("llm.response", {"content": f"ANSWER {seq}", "usage": {"input": 5, "output": 7}}),
        ):
            event = {"session_id": "evil", "seq": seq, "type": kind, "ts": "2026-11-20T10:00:01Z", "data": data}
            log.write(json.dumps(event).encode() + b"\\n")
            log.flush()
"""


def test_a_session_that_grows_shows_its_new_turns(app, monkeypatch, tmp_path):
    """Another process writes: at the end the view stays at the end, elsewhere it keeps its place."""
    monkeypatch.setattr(views, "_LOOK_SECONDS", 0.02)
    log = tmp_path / "logs" / "evil.jsonl"

    def write(first, last):
        subprocess.run([sys.executable, "-c", TURN, str(log), str(first), str(last)], check=True, timeout=30)

    async def steps(pilot):
        await until(pilot, lambda: "2 sessions" in screen(app))
        await pilot.press("slash", *"gnp", "enter", "enter")
        await until(pilot, lambda: "you ▸" in screen(app) and "reading" not in screen(app))
        write(3, 30)
        await until(pilot, lambda: "ANSWER 29" in screen(app))
        write(30, 40)
        await until(pilot, lambda: "ANSWER 39" in screen(app))
        await pilot.press("pageup", "pageup")
        before = [line[:78] for line in screen(app).splitlines()[1:-3]]  # without the scroll bar
        count = len(app.replay._store)
        write(40, 60)
        await until(pilot, lambda: len(app.replay._store) > count)
        assert [line[:78] for line in screen(app).splitlines()[1:-3]] == before
        await pilot.press("G")
        await until(pilot, lambda: "ANSWER 59" in screen(app))

    drive(app, steps, (80, 24))


def test_a_session_that_is_left_is_not_read_again(app, monkeypatch, tmp_path):
    """The thread ends with the view."""
    monkeypatch.setattr(views, "_LOOK_SECONDS", 0.02)

    async def steps(pilot):
        await until(pilot, lambda: "2 sessions" in screen(app))
        await pilot.press("enter")
        await until(pilot, lambda: "lines" in screen(app) and "reading" not in screen(app))
        layout = app.replay._layout
        await pilot.press("escape")
        log = tmp_path / "logs" / "story.jsonl"
        log.write_bytes(log.read_bytes() * 2)
        await pilot.pause(0.1)
        assert layout.rounds == 1

    drive(app, steps)


def test_what_is_painted_late_finds_no_screen(app):
    """The application may end before the size has stopped changing."""

    async def steps(pilot):
        await until(pilot, lambda: "2 sessions" in screen(app))
        screens = app._screen_stacks[app.current_mode]
        kept, screens[:] = screens[:], []
        app._repaint()
        screens[:] = kept

    drive(app, steps)


def test_known_sessions_are_shown_before_the_logs_are_looked_at(app, monkeypatch, tmp_path):
    """The ledger's sessions are there at once; those of new logs join them, and the cursor keeps its session."""
    queries, may_look = app.queries, threading.Event()
    list_all, asked = queries.sessions, []

    def wait(*given):
        asked.append(given)
        may_look.wait(30)
        return list_all(*given)

    list_all({}, None, lambda done, total: None)
    shutil.copy(STORY, tmp_path / "logs" / "third.jsonl")
    monkeypatch.setattr(queries, "sessions", wait)

    async def steps(pilot):
        await until(pilot, lambda: "2 sessions" in screen(app))
        await pilot.press("end")
        await until(pilot, lambda: app.sessions.cursor == 1)
        before = app.sessions.session.session
        may_look.set()
        await until(pilot, lambda: "3 sessions" in screen(app))
        assert app.sessions.session.session == before

    drive(app, steps)
    assert len(asked) == 1


def test_logs_without_news_are_not_listed_again(app, monkeypatch, tmp_path):
    """An up-to-date ledger needs no second list."""
    for place in (*tmp_path.rglob("*"), tmp_path):
        os.utime(place, (LONG_AGO, LONG_AGO))
    app.queries.sessions({}, None, lambda done, total: None)
    monkeypatch.setattr(app.queries, "sessions", None)

    async def steps(pilot):
        await until(pilot, lambda: "2 sessions" in screen(app))
        await pilot.pause(0.2)
        assert "2 sessions" in screen(app)

    drive(app, steps)


def test_a_long_list_grows_as_one_scrolls(app, monkeypatch, tmp_path):
    """A list opens with two screens of sessions; more are laid out before they come into view, up to a limit."""
    monkeypatch.setattr(views, "_SESSIONS", 150)
    for number in range(200):
        shutil.copy(STORY, tmp_path / "logs" / f"n{number:03}.jsonl")

    async def steps(pilot):
        await until(pilot, lambda: "202 sessions · the newest 150 are listed" in screen(app))
        assert len(app.sessions._shown) < 60
        await pilot.press("pagedown", "pagedown")
        await until(pilot, lambda: 60 < len(app.sessions._shown) < 150)
        before = app.sessions.session.session
        await pilot.press("end")
        await until(pilot, lambda: len(app.sessions._shown) == 150)
        assert app.sessions.session == app.sessions._shown[-1]
        assert app.sessions.session.session != before

    drive(app, steps)


def test_the_progress_of_an_old_question_is_not_shown(app):
    """It would replace the words about a newer answer, and stay."""
    made, waiting = [], threading.Event()

    def slow(progress):
        waiting.wait(10)
        progress(16, 16)
        made.append(None)

    async def steps(pilot):
        await until(pilot, lambda: "2 sessions" in screen(app))
        app.ask("sessions", slow, lambda _: None)
        app.ask("sessions", lambda _: None, lambda _: app.status("the newer answer", app.shown))
        await until(pilot, lambda: "the newer answer" in screen(app))
        waiting.set()
        await until(pilot, lambda: made)
        await pilot.pause(0.05)
        assert "the newer answer" in screen(app)

    drive(app, steps)


def test_pages_of_sessions_whose_ids_are_alike_are_files_of_their_own(app, tmp_path):
    """Opened again, a session has the page that it had."""
    ids = ["story", "Story", "sto:ry", "sto?ry"]
    for name in ids[1:]:
        shutil.copy(STORY, tmp_path / "logs" / f"{name}.jsonl")
    found = [one for one in app.queries.sessions({}, None, lambda *_: None).rows if one.session in ids]
    pages = [app.queries.page(one) for one in found]
    assert len({os.path.basename(path).casefold() for path in pages}) == len(ids)
    assert [app.queries.page(one) for one in found] == pages
