"""A session of the archive is found as a live one is, and only where there is no live one."""

import os
import shutil
from dataclasses import replace

import pytest

from sessionlog.archive.find import find_entry, open_session
from sessionlog.archive.keep import archive_logs
from sessionlog.archive.manifest import add_entries, archive_folder, read_manifest
from sessionlog.errors import AmbiguousSession, LogNotReadable, Problem
from tests.sources.homes import build_home, environment
from tests.sources.logs import ended, start, write_log


@pytest.fixture
def env(tmp_path):
    """An archive of three logs that are gone."""
    env = {"HOME": str(tmp_path), "SESSIONLOG_DIR": str(tmp_path / "logs"), "XDG_DATA_HOME": str(tmp_path / "data")}
    for name in ("2026-aaaa", "2026-bbbb", "deep/other"):
        write_log(tmp_path / "logs" / f"{name}.jsonl", start(), b"torn\n", ended())
    archive_logs(archive_folder(env), env)
    shutil.rmtree(tmp_path / "logs")
    return env


@pytest.mark.parametrize(("target", "name"), [("2026-aaaa", "2026-aaaa"), ("2026-b", "2026-bbbb"), ("bbbb", "2026-bbbb"), ("oth", "deep/other")])  # fmt: skip
def test_a_session_is_named_as_always(env, target, name):
    """Whole, by the beginning, by the end."""
    entry = find_entry(target, archive_folder(env))
    assert entry.path == os.path.join(env["SESSIONLOG_DIR"], f"{name}.jsonl")


def test_a_relative_path_is_found(env, monkeypatch):
    """From where it once was."""
    monkeypatch.chdir(env["HOME"])
    assert find_entry("logs/deep/other.jsonl", archive_folder(env)) is not None


def test_several_matches_are_ambiguous(env):
    """The error names them."""
    with pytest.raises(AmbiguousSession) as caught:
        find_entry("2026", archive_folder(env))
    assert caught.value.candidates == ("2026-aaaa", "2026-bbbb")


@pytest.mark.parametrize("target", ["nothing", "aaab", "."])
def test_what_is_nowhere_is_said_as_without_an_archive(env, target):
    """By the one who looked first."""
    with pytest.raises(LogNotReadable), open_session(target, None, env):
        pass


def test_problems_are_those_of_the_original(env):
    """A copy that is soon gone is nobody's file."""
    with open_session("2026-aaaa", None, env) as (log, session, entry):
        problems = [item for item in log.source.read(log.path, session) if isinstance(item, Problem)]
        place = log.path
    assert [problem.path for problem in problems] == [entry.path]
    assert not os.path.exists(place)


def test_the_copy_goes_also_when_reading_fails(env):
    """Whatever is raised inside."""
    opened = open_session("2026-aaaa", None, env)
    log, _, _ = opened.__enter__()
    assert os.path.exists(log.path)
    assert not opened.__exit__(RuntimeError, RuntimeError(), None)
    assert not os.path.exists(log.path)


def test_a_source_that_is_not_installed_is_said(env):
    """It was another package's."""
    entry = find_entry("2026-aaaa", archive_folder(env))
    add_entries(archive_folder(env), [replace(entry, source="quill", path="/gone")])
    path = os.path.join(archive_folder(env), "quill")
    os.mkdir(path)
    shutil.copy(os.path.join(archive_folder(env), entry.name), path)
    with pytest.raises(LogNotReadable, match=r"quill|missing"), open_session("/gone", None, env):
        pass


def test_an_entry_whose_pack_is_gone_is_said(env):
    """It is not readable, and that is no crash."""
    os.unlink(os.path.join(archive_folder(env), find_entry("2026-aaaa", archive_folder(env)).name))
    with pytest.raises(LogNotReadable, match="no such file"), open_session("2026-aaaa", None, env):
        pass


@pytest.mark.parametrize("case", ["gemini/sub-agent", "qwen-code/sub-agent", "opencode/legacy-files", "kimi/sub-agent"])
def test_a_session_is_its_own_log_before_its_sub_agents(case, tmp_path):
    """In whatever order they were archived."""
    home = build_home(case, tmp_path)
    env = environment(case, home) | {"XDG_DATA_HOME": str(tmp_path / "data")}
    if (home / ".local" / "share").exists():
        shutil.copytree(home / ".local" / "share", tmp_path / "data")
    folder = archive_folder(env)
    archive_logs(folder, env)
    entries = read_manifest(folder)
    shared = [
        one
        for one in {s for e in entries.values() for s in e.sessions}
        if sum(one in e.sessions for e in entries.values()) > 1
    ]
    found = {one: find_entry(one, folder).path for one in shared}
    os.unlink(os.path.join(folder, "manifest.jsonl"))
    for entry in reversed(list(entries.values())):
        add_entries(folder, [entry])
    assert {one: find_entry(one, folder).path for one in shared} == found
    assert not [path for path in found.values() if "subagents" in path]
