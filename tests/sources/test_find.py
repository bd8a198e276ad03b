"""From what a person types to one log: a path, an id, or the beginning of an id."""

import pytest

from sessionlog.errors import AmbiguousSession, LogNotReadable
from sessionlog.sources.discover import find_logs
from sessionlog.sources.find import resolve_session
from tests.sources.logs import start, write_log


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
