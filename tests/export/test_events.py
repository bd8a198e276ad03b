"""Export of events to parquet: each event once, without secrets, and only what is new."""

import errno
import json
import os
import shutil
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from sessionlog.analytics.sql.event_logs import EventSelection
from sessionlog.cli import main
from sessionlog.errors import LogNotReadable, NotExported
from sessionlog.export.destination import LocalFolder
from sessionlog.export.event_state import EventState
from sessionlog.export.events import export_events
from sessionlog.files import reading
from tests.export.conftest import event
from tests.ledger.little_home import LittleHome
from tests.ledger.little_logs import PATHS

LATEST = """SELECT {columns} FROM (SELECT * FROM read_parquet('{team}/events/*/*/*/*.parquet') QUALIFY row_number() OVER
    (PARTITION BY machine_id, log_key, session, position ORDER BY revision DESC) = 1) WHERE NOT deleted ORDER BY ALL"""
KEY = "sk-ant-api03-" + "Ab3" * 30 + "-AAAAAA"


@pytest.fixture
def send(tmp_path, log):
    """Export the events of the log's folder to `team`."""

    def send(**options):
        env = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
        selection = EventSelection(paths=[str(log.parent)], env=env, jobs=1)
        return export_events(str(tmp_path / "team"), selection, "m1", **options)

    return send


def rows(tmp_path, columns="position, type, text"):
    """The events that hold, by the rule of the page."""
    with duckdb.connect(config={"threads": "1"}) as connection:
        return connection.execute(LATEST.format(columns=columns, team=tmp_path / "team")).fetchall()


def manifests(tmp_path):
    """The manifests, and all files of events, which they list."""
    names = sorted(tmp_path.glob("team/events-manifest/v=1/machine=m1/*.json"))
    listed = {file["path"] for name in names for file in json.loads(name.read_text())["files"]}
    found = {str(path.relative_to(tmp_path / "team")) for path in tmp_path.glob("team/events/**/*.parquet")}
    assert listed == found
    return names


def test_events_are_written_once(send, tmp_path, log):
    """A second export writes nothing; a grown log's new events are added, and a changed log's take the place of the old."""
    assert (send().events, len(manifests(tmp_path))) == (7, 1)
    again = send()
    assert (again.events, again.files, again.unchanged_logs, again.manifest) == (0, 0, 1, "")
    with log.open("a") as file:
        file.write(event(7, 9, "progress", message="still there"))
    assert (send().events, len(manifests(tmp_path))) == (1, 2)
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:4]).replace("secret words", "other words"))
    changed = send()
    assert (changed.events, changed.deleted) == (1, 4)
    assert [text for _, kind, text in rows(tmp_path) if kind == "llm.request"] == ["other words"]
    assert [position for position, *_ in rows(tmp_path)] == [0, 1, 2, 3]


def test_numbers_are_those_of_the_log(send, tmp_path):
    """Columns have their types, and time its zone."""
    send()
    [(tokens, cached, latency, time)] = rows(
        tmp_path,
        "sum(input_tokens), sum(cache_read_tokens), max(latency_ms), strftime(min(time) AT TIME ZONE 'UTC', '%c')",
    )
    assert (tokens, cached, latency, "2026" in time) == (40, 60, 2500.25, True)


def test_known_secrets_are_not_written(send, tmp_path, log):
    """Neither as text nor in the payload."""
    with log.open("a") as file:
        file.write(event(7, 9, "tool.call", tool="bash", input={"command": f"export KEY={KEY}"}, output=KEY))
    send()
    [(text, data)] = [row for row in rows(tmp_path, "text, data::VARCHAR") if "export KEY" in (row[1] or "")]
    assert KEY not in text
    assert KEY not in data


def test_texts_can_be_left_out(send, tmp_path):
    """Then no column has words of a conversation."""
    assert send(has_texts=False).events == 7
    assert set(rows(tmp_path, "text, data, error")) == {(None, None, None)}
    for path in tmp_path.glob("team/events/**/*.parquet"):
        assert b"secret words" not in path.read_bytes()


def test_a_dry_run_writes_nothing(send, tmp_path):
    """And keeps no state."""
    assert send(dry_run=True).events == 7
    assert not (tmp_path / "team").exists()
    assert list((tmp_path / "state").rglob("*.sqlite")) == []
    assert send().events == 7
    [state] = (tmp_path / "state").rglob("*.sqlite")
    assert send(dry_run=True).events == 0
    assert state.exists()


def test_a_lost_destination_or_state_is_written_again(send, tmp_path):
    """Each event still holds once."""
    send()
    for path in (tmp_path / "state").rglob("*.sqlite"):
        path.unlink()
    assert send().events == 7
    assert len(rows(tmp_path)) == 7
    for path in manifests(tmp_path):
        path.unlink()
    assert send().events == 7


def test_a_killed_export_is_repeated(send, tmp_path, monkeypatch):
    """Without its manifest nothing is known, and its files are written again."""
    with monkeypatch.context() as patched:
        patched.setattr("sessionlog.export.events._Run._write_manifest", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            send()
    assert send().events == 7
    assert len(rows(tmp_path)) == 7


def grow(log, number, **options):
    """Add an event."""
    with log.open("a") as file:
        file.write(event(6 + number, 8 + number, "progress", message=f"step {number}", **options))


def test_small_files_are_merged(send, tmp_path, log, monkeypatch):
    """Each event holds once, before and after the parts are removed a day later; a second time there is nothing to merge."""
    send()
    for number in range(1, 4):
        grow(log, number)
        send()
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:8]).replace("secret words", "other words"))
    assert (send().deleted, len(manifests(tmp_path))) == (2, 5)
    before = rows(tmp_path)
    done = send(compact=True)
    assert (done.merged > 4, done.files, bool(done.manifest)) == (True, 0, True)
    assert rows(tmp_path) == before
    assert (send(compact=True).merged, send(compact=True).manifest) == (0, "")
    monkeypatch.setattr("sessionlog.export.events.KEPT", timedelta(seconds=-5))
    grow(log, 9)
    send()
    assert len(manifests(tmp_path)) == 2
    assert rows(tmp_path)[:-1] == before
    assert len(list(tmp_path.glob("team/events/**/*.parquet"))) == 3
    assert send().events == 0


def test_many_small_files_are_merged_by_themselves(send, tmp_path, log):
    """From 25 of a month on."""
    for number in range(1, 27):
        grow(log, number)
        assert send().merged == (25 if number == 25 else 0)
    assert len(rows(tmp_path)) == 33


def test_a_kill_while_files_are_merged_loses_nothing(send, tmp_path, log, monkeypatch):
    """Before and after each file that is written or removed."""
    for number in range(1, 4):
        grow(log, number)
        send()
    before = rows(tmp_path)
    monkeypatch.setattr("sessionlog.export.events.KEPT", timedelta(seconds=-5))
    for moment in range(20):
        left = iter(range(moment))

        def step(call, *given, left=left):
            if next(left, None) is None:
                raise ZeroDivisionError
            call(*given)

        with monkeypatch.context() as patch:
            for name in ("write", "remove"):
                call = getattr(LocalFolder, name)
                patch.setattr(LocalFolder, name, lambda *given, call=call, step=step: step(call, *given))
            try:
                send(compact=True)
                send()
                break
            except ZeroDivisionError:
                assert rows(tmp_path) == before
    assert moment > 3
    assert rows(tmp_path) == before


def test_a_place_that_was_restored_keeps_what_it_has(send, tmp_path, log, monkeypatch):
    """Of a deleted log its older files have the only events: a merge that the place has lost does not remove them."""
    other = log.with_name("t.jsonl")
    other.write_text(log.read_text().replace('"s"', '"t"'))
    send()
    grow(log, 1)
    send()
    other.unlink()
    shutil.copytree(tmp_path / "team", tmp_path / "backup")
    assert send(compact=True).merged > 1
    shutil.rmtree(tmp_path / "team")
    (tmp_path / "backup").rename(tmp_path / "team")
    before = rows(tmp_path)
    monkeypatch.setattr("sessionlog.export.events.KEPT", timedelta(seconds=-5))
    for number in range(2, 4):
        grow(log, number)
        send()
    assert len(before) == 15
    assert len(rows(tmp_path)) == 17


def test_two_exports_to_one_place_do_not_run_at_once(send, tmp_path):
    """The second one ends with a sentence."""
    send()
    [path] = (tmp_path / "state").rglob("*.sqlite")
    with EventState(str(path)), pytest.raises(NotExported, match="another export to the same place"):
        send()


def test_the_command_writes_events_beside_numbers(tmp_path, log, monkeypatch, capsys):
    """One line says that texts are written; hashed project names and texts do not fit together."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SESSIONLOG_DIR", str(log.parent))
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "SESSIONLOG_LEDGER"):
        monkeypatch.delenv(name, raising=False)
    team = str(tmp_path / "team")
    assert main(["export", team, "--parquet", "--events", "--source", "native"]) == 0
    out = capsys.readouterr().out
    assert "wrote 7 events" in out
    assert "with texts and payloads; secrets that are known by their shapes are replaced" in out
    assert main(["export", team, "--parquet", "--events", "--source", "native", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["events"]["unchanged_logs"] == 1
    assert main(["export", team, "--parquet", "--events", "--redact-projects"]) == 2
    assert main(["export", "--otlp", "http://localhost:1", "--events"]) == 2
    assert sorted(path.name for path in Path(team).iterdir()) == [
        "events",
        "events-manifest",
        "manifest",
        "sessions",
        "tools",
        "usage",
    ]


def test_what_is_out_of_reach_is_not_deleted(tmp_path, monkeypatch):
    """Of a sub-agent's log below a folder that cannot be listed, and of a log that fails midway; both come back."""
    home = LittleHome(tmp_path)
    log, part = (
        next(path for path in PATHS["claude"] if ("subagents" in path) is is_part) for is_part in (False, True)
    )
    home.append(log, [("answer", number, 3) for number in range(4)])
    home.append(part, [("answer", number, 3) for number in range(10, 14)])
    env = {**home.env, "XDG_STATE_HOME": str(tmp_path / "state")}

    def send():
        done = export_events(str(tmp_path / "team"), EventSelection(env=env, jobs=1), "m1")
        return done.deleted, len(rows(tmp_path))

    _, before = send()
    hidden = str(home.at(part).parent)

    def scan(folder, real=os.scandir):
        if str(folder) == hidden:
            raise OSError(errno.EIO, "input/output error", folder)
        return real(folder)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scan)
        assert send() == (0, before)
        home.append(log, [("answer", 5, 3)])
        assert send() == (0, before)
    assert send() == (0, before + 2)

    def failing(reader, buffer, real=reading._LogReader.readinto):
        if reader.name == str(home.at(log)) and reader.tell() > 100:
            raise LogNotReadable(f"{reader.name}: input/output error")
        return real(reader, memoryview(buffer)[:1000])

    home.append(log, [("answer", 6, 3)])
    with monkeypatch.context() as patch:
        patch.setattr(reading._LogReader, "readinto", failing)
        assert send() == (0, before + 2)
    assert send() == (0, before + 4)
    home.at(part).unlink()
    assert send() == (4, before)
