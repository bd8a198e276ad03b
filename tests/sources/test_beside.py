"""What a source reads beside a log it names: else a change there, or a copy without it, would go unseen."""

import os

import pytest

from sessionlog.errors import LogNotReadable
from sessionlog.sources.discover import discover
from sessionlog.sources.places import searched
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import all_sources, load_source
from tests.sources.homes import build_home, environment
from tests.turns import cases_by_turns


@pytest.fixture
def opened(monkeypatch):
    """The paths of all files that are opened, SQLite's own apart."""
    paths = []
    real = os.open

    def noted(path, *given, **options):
        paths.append(os.path.abspath(path))
        return real(path, *given, **options)

    monkeypatch.setattr(os, "open", noted)
    return paths


@pytest.mark.parametrize("case", cases_by_turns(4, turn=2))
def test_no_file_is_read_that_is_not_named(case, tmp_path, opened):
    """For reports and for replays: the log itself, logs of its sub-agents, and what `beside` gives for these."""
    env = environment(case, build_home(case, tmp_path))
    for log in discover(env, all_sources()):
        if not isinstance(log, Log):
            continue
        logs = (log.path, *log.source.subagent_logs(log.path))
        named = [os.path.abspath(path) for one in logs for path in (one, *log.source.sidecars(one))]
        opened.clear()
        try:
            log.source.scan(log.path, None)
            for session_id in log.source.name_sessions(log.path):
                list(log.source.read(log.path, session_id))
        except LogNotReadable:
            pass
        assert [path for path in opened if not _is_within(path, named)] == []


def _is_within(path, named):
    return any(path in (name, f"{name}-wal", f"{name}-shm") or path.startswith(f"{name}{os.sep}") for name in named)


@pytest.mark.parametrize("case", cases_by_turns(4, turn=3))
def test_what_is_beside_is_never_the_log_itself(case, tmp_path):
    """And each file is named once, and is not above the log."""
    env = environment(case, build_home(case, tmp_path))
    for log in discover(env, all_sources()):
        if isinstance(log, Log):
            beside = [os.path.abspath(path) for path in log.source.sidecars(log.path)]
            assert len(set(beside)) == len(beside)
            assert not [path for path in beside if os.path.abspath(log.path).startswith(path + os.sep)]
            assert os.path.abspath(log.path) not in beside


def test_the_description_of_a_sub_agent_is_beside_its_log():
    """It may come later; a session's own log has none."""
    beside = load_source("claude-code").sidecars
    assert list(beside("/h/projects/-w/s/subagents/agent-a1.jsonl")) == [
        "/h/projects/-w/s/subagents/agent-a1.meta.json"
    ]
    assert list(beside("/h/projects/-w/s.jsonl")) == []


def test_a_session_above_its_storage_is_not_looked_for(tmp_path):
    """A hostile parent leads nowhere."""
    message = tmp_path / "opencode" / "storage" / "message" / "ses_1"
    message.mkdir(parents=True)
    described = tmp_path / "opencode" / "storage" / "session" / "global" / "ses_1.json"
    described.parent.mkdir(parents=True)
    described.write_text('{"id": "ses_1", "parentID": "../../../../secret"}')
    (tmp_path / "secret.json").write_text("{}")
    assert list(load_source("opencode").sidecars(str(message))) == [str(described)]


@pytest.mark.parametrize("source", ["codex", "openclaw"])
@pytest.mark.parametrize("below", ["agents/main/agent/codex-home/sessions", "agents/main/sessions"])
def test_a_new_profile_is_a_new_place(source, below, tmp_path):
    """Places are looked for by name; each agent of OpenClaw may have a home of Codex."""
    env = {"HOME": str(tmp_path)}
    before = set(searched(env)[source])
    place = tmp_path / ".openclaw-work" / below
    place.mkdir(parents=True)
    is_its_own = ("codex-home" in below) == (source == "codex")
    assert (str(place) in set(searched(env)[source]) - before) == is_its_own


def test_folders_without_logs_are_not_watched(tmp_path):
    """Opencode keeps a snapshot of the files that it works on: very many folders of git."""
    for name in ("snapshot/a/objects/00", "storage/session/global", "storage/part/msg_1"):
        (tmp_path / name).mkdir(parents=True)
    watched = {os.path.relpath(folder, tmp_path) for folder in load_source("opencode").folders(str(tmp_path))}
    assert watched == {".", "storage", "storage/session", "storage/session/global"}
