"""From what a person types to one log: a path, an id, or the beginning of an id."""

import os
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from sessionlog.analytics.sessions import list_sessions
from sessionlog.errors import AmbiguousSession, LogNotReadable
from sessionlog.sources.discover import discover, find_logs
from sessionlog.sources.find import log_at, matching, resolve_log, resolve_session
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import all_sources
from tests.sources.homes import all_cases, build_home, environment
from tests.sources.logs import start, write_log
from tests.sources.plugin.scribe import SOURCE
from tests.sources.plugin.scrolls import POINT, installed, story, write_scroll


@pytest.fixture
def folder(tmp_path):
    """Three sessions, one of them packed, one deeper."""
    for name in ("20261120T100000Z-aaaa.jsonl", "20261120T100000Z-aabb.jsonl.gz", "deep/other.jsonl"):
        write_log(tmp_path / "logs" / name, start())
    return str(tmp_path / "logs")


def test_an_existing_path_comes_first(folder, tmp_path, monkeypatch):
    """A file that is named is meant, even where an id begins the same way."""
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "other", start())
    assert resolve_session("other", folder) == "other"


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("20261120T100000Z-aaa", "20261120T100000Z-aaaa.jsonl"),
        ("20261120T100000Z-aab", "20261120T100000Z-aabb.jsonl.gz"),
    ],
)
def test_the_beginning_of_an_id_is_enough(folder, target, found):
    """As long as it is the beginning of one only."""
    assert resolve_session(target, folder) == f"{folder}/{found}"


def test_sessions_in_subfolders_are_found(folder):
    """Every log below the folder has its id."""
    assert resolve_session("oth", folder) == f"{folder}/deep/other.jsonl"


def test_a_whole_id_wins_over_longer_ones(folder):
    """An id that is the beginning of another can still be named."""
    write_log(f"{folder}/2026.jsonl", start())
    assert resolve_session("2026", folder) == f"{folder}/2026.jsonl"


def test_the_beginning_of_a_session_with_sub_agents_is_the_session():
    """Their ids begin with its own; one of them is found by more of its id."""
    ids = ["b1ec-8ee3", "b1ec-8ee3/agent-1", "b1ec-8ee3/agent-2", "c0/agent-1", "c0/agent-2"]
    assert matching("b1ec", ids) == ["b1ec-8ee3"]
    assert matching("b1ec-8ee3/agent-2", ids) == matching("agent-2", ids[:4]) == ["b1ec-8ee3/agent-2"]
    assert matching("c0", ids) == ["c0/agent-1", "c0/agent-2"]


def test_an_ambiguous_beginning_lists_its_candidates(folder):
    """The error knows all of them, sorted."""
    with pytest.raises(AmbiguousSession) as caught:
        resolve_session("2026", folder)
    assert caught.value.candidates == ("20261120T100000Z-aaaa", "20261120T100000Z-aabb")


@pytest.mark.parametrize("target", ["same", "sa"])
def test_one_id_in_two_files_is_ambiguous(folder, target):
    """Which of two files is meant is not ours to choose: both paths are named."""
    paths = (write_log(f"{folder}/a/same.jsonl", start()), write_log(f"{folder}/b/same.jsonl", start()))
    with pytest.raises(AmbiguousSession) as caught:
        resolve_session(target, folder)
    assert caught.value.candidates == paths


@pytest.mark.parametrize("target", ["nothing", "aaab", "../logs/other"])
def test_what_matches_nothing_is_not_readable(folder, target):
    """The message names what was typed and where was looked."""
    with pytest.raises(LogNotReadable, match=target) as caught:
        resolve_session(target, folder)
    assert folder in str(caught.value)


@pytest.mark.parametrize("directory", [None, "/nonexistent/folder"])
def test_without_a_folder_only_paths_are_found(directory):
    """No session folder is no crash."""
    with pytest.raises(LogNotReadable, match="no session folder"):
        resolve_session("x", directory)


def test_a_folder_is_not_a_session(folder):
    """A replay of many is not meant."""
    with pytest.raises(LogNotReadable, match="is a folder"):
        resolve_session(folder, folder)


def test_the_end_of_an_id_is_enough(tmp_path):
    """Ids of one day begin alike: the last characters name a session, if they are no less than four."""
    for name in ("20261121T100000Z-aaaa1111", "20261121T100000Z-bbbb2222"):
        (tmp_path / f"{name}.jsonl").write_text("{}\n")
    assert resolve_session("2222", str(tmp_path)).endswith("bbbb2222.jsonl")
    with pytest.raises(LogNotReadable, match="begins or ends"):
        resolve_session("222x", str(tmp_path))


def test_a_packed_copy_beside_its_log_is_not_a_second_session(tmp_path):
    """`x.jsonl` and `x.jsonl.gz` in one folder are one session; in another folder it is another one."""
    for name in ("x.jsonl", "x.jsonl.gz", "other/x.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    assert [log.path.removeprefix(str(tmp_path)) for log in find_logs([str(tmp_path)], {})] == [
        "/other/x.jsonl",
        "/x.jsonl",
    ]


# --- logs of every agent


@pytest.fixture
def world(folder, tmp_path):
    """Our sessions, and two scrolls of an agent that is installed as a plug-in: the environment."""
    write_scroll(tmp_path / ".scribe" / "tale-of-two.scroll", *story())
    write_scroll(tmp_path / ".scribe" / "tale-of-one.scroll", *story())
    with installed(POINT):
        yield {"HOME": str(tmp_path), "SESSIONLOG_DIR": folder}


def found(target, folder, env):
    """(source, file name, session) of what a text names."""
    log, session = resolve_log(target, folder, env)
    return log.source.id, os.path.basename(log.path), session


@pytest.mark.parametrize(
    ("target", "session"), [("tale-of-two", "tale-of-two"), ("tale-of-o", "tale-of-one"), ("f-one", "tale-of-one")]
)
def test_sessions_of_other_agents_have_ids_too(folder, world, target, session):
    """Whole, by the beginning, or by the end."""
    assert found(target, folder, world) == ("scribe", f"{session}.scroll", session)


def test_our_own_sessions_come_first(folder, world, tmp_path):
    """An id that fits one of ours is not looked for elsewhere."""
    write_scroll(tmp_path / ".scribe" / "other.scroll", *story())
    assert found("oth", folder, world) == ("native", "other.jsonl", None)


def test_sessions_of_other_agents_may_be_ambiguous(folder, world):
    """The error knows all of them."""
    with pytest.raises(AmbiguousSession) as caught:
        resolve_log("tale-of-", folder, world)
    assert caught.value.candidates == ("tale-of-one", "tale-of-two")


def test_other_agents_are_found_without_a_folder_of_ours(world):
    """A user of other agents only has none."""
    assert found("tale-of-two", None, world)[0] == "scribe"
    assert found("tale-of-two", "/nonexistent", world)[0] == "scribe"


def test_what_nobody_has_is_said_of_our_folder(folder, world):
    """The message names what was typed and where was looked."""
    with pytest.raises(LogNotReadable, match="nothing") as caught:
        resolve_log("nothing", folder, world)
    assert folder in str(caught.value)


def test_a_log_that_cannot_be_opened_hides_no_other(folder, world, tmp_path):
    """Its sessions have no names, the others have."""

    def refuse(path):
        raise LogNotReadable(f"{path}: database is locked")

    write_scroll(tmp_path / ".scribe" / "a.scroll", *story())
    name = SOURCE.name_sessions
    odd = replace(SOURCE, name_sessions=lambda path: refuse(path) if path.endswith("/a.scroll") else name(path))
    with patch("tests.sources.plugin.scribe.SOURCE", odd), installed(POINT):
        assert found("tale-of-two", folder, world)[0] == "scribe"


@pytest.mark.parametrize("name", ["x.scroll", "x.jsonl", "x", "x.txt"])
def test_a_path_is_whose_its_content_is(folder, world, tmp_path, name):
    """Its name and its place say nothing."""
    path = write_scroll(tmp_path / name, *story())
    assert found(path, folder, world) == ("scribe", name, None)
    assert log_at(path).source.id == "scribe"
    write_log(path, start())
    assert found(path, folder, world) == ("native", name, None)


def test_a_path_that_is_no_log_is_not_replayed(folder, world, tmp_path):
    """The next step is to see which are known."""
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(LogNotReadable, match=r"notes\.txt: no log of a known agent; `sessionlog sources`"):
        resolve_log(str(tmp_path / "notes.txt"), folder, world)


def test_a_folder_is_no_log_of_any_agent(folder, world, tmp_path):
    """Nor the beginning of an id."""
    with pytest.raises(LogNotReadable, match="is a folder"):
        resolve_log(str(tmp_path / ".scribe"), folder, world)


# --- a session of several logs


def has_parts(log):
    """Whether a log tells of the work of a sub-agent in its parent's session."""
    return any(session.part for session in log.source.scan(log.path, None).sessions)


def test_the_id_of_a_session_names_its_main_log(tmp_path):
    """Never the log of a sub-agent that is a part of it, in every fixture that has such parts."""
    tried = set()
    for number, case in enumerate(all_cases()):
        env = environment(case, build_home(case, tmp_path / str(number)))
        parts = {log.path for log in discover(env, all_sources()) if isinstance(log, Log) and has_parts(log)}
        for session in list_sessions(None, env=env).rows if parts else ():
            log, named = resolve_log(session.session, None, env)
            assert log.path == session.path or (named == session.session and log.path not in parts), (case, log.path)
            tried.add(log.source.id)
    assert tried >= {"claude-code", "gemini", "kimi", "opencode", "qwen-code"}


def test_sessions_of_all_agents_are_named_where_several_are_meant(tmp_path, folder, world):
    """Also where those of our own are several already."""
    ours = tmp_path / "mine"
    ours.mkdir()
    others = sorted(found.session for found in list_sessions(None, env=world).rows if found.source != "native")
    letter = others[0][0]
    for name in ("one", "two"):
        (ours / f"{letter}-{name}.jsonl").write_bytes(b"")
    with pytest.raises(AmbiguousSession) as caught:
        resolve_log(letter, str(ours), world)
    assert {f"{letter}-one", f"{letter}-two", others[0]} <= set(caught.value.candidates)


def test_a_folder_is_told_with_some_of_its_sessions(tmp_path):
    """So that one can be named."""
    for number in range(7):
        (tmp_path / f"s-{number}.jsonl").write_bytes(b"")
    with pytest.raises(LogNotReadable, match=r"name one session of it: .*s-0\.jsonl, .*s-4\.jsonl and 2 more$"):
        resolve_session(str(tmp_path), None)
