"""The manifest: the last word on a log counts, torn lines do not, and a lost one is made again."""

import os

import pytest

from sessionlog.archive.find import open_session
from sessionlog.archive.keep import archive_logs
from sessionlog.archive.manifest import add_entries, archive_folder, read_manifest
from sessionlog.errors import LogNotReadable
from tests.sources.logs import ended, start, write_log


@pytest.fixture
def env(tmp_path):
    """An archive of two logs."""
    env = {"HOME": str(tmp_path), "SESSIONLOG_DIR": str(tmp_path / "logs"), "XDG_DATA_HOME": str(tmp_path / "data")}
    for name in ("s-1", "s-2"):
        write_log(tmp_path / "logs" / f"{name}.jsonl", start(), ended())
    assert len(archive_logs(archive_folder(env), env).kept) == 2
    return env


def manifest(env):
    """Where it is."""
    return os.path.join(archive_folder(env), "manifest.jsonl")


def test_without_an_archive_there_are_no_entries(tmp_path):
    """And reading makes none but an empty folder's name."""
    assert read_manifest(str(tmp_path / "none")) == {}


def test_the_archive_is_where_data_are_kept(env, tmp_path):
    """By XDG."""
    assert archive_folder(env) == str(tmp_path / "data" / "sessionlog" / "archive")


def test_the_last_line_of_a_log_counts(env):
    """Its place among the others stays."""
    from dataclasses import replace

    first, second = read_manifest(archive_folder(env)).values()
    add_entries(archive_folder(env), [replace(first, sessions=("other",))])
    assert list(read_manifest(archive_folder(env)).values()) == [replace(first, sessions=("other",)), second]


def test_a_torn_line_is_no_entry(env):
    """What a killed process left is passed over, and the next line is whole."""
    first, second = read_manifest(archive_folder(env)).values()
    with open(manifest(env), "ab") as file:
        file.write(first.to_json()[:50].encode())
    add_entries(archive_folder(env), [second])
    assert list(read_manifest(archive_folder(env)).values()) == [first, second]


def test_a_lost_manifest_is_made_again(env, tmp_path):
    """From the entries themselves: nothing that was kept is lost with it."""
    before = read_manifest(archive_folder(env))
    os.unlink(manifest(env))
    for name in ("s-1", "s-2"):
        os.unlink(tmp_path / "logs" / f"{name}.jsonl")
    found = read_manifest(archive_folder(env))
    assert {key: entry.version for key, entry in found.items()} == {key: e.version for key, e in before.items()}
    assert os.path.exists(manifest(env))
    with open_session("s-2", None, env) as (log, session, _):
        assert len(list(log.source.read(log.path, session))) == 2


def test_a_damaged_entry_is_no_part_of_a_new_manifest(env):
    """The other is."""
    first, second = read_manifest(archive_folder(env)).values()
    os.unlink(manifest(env))
    with open(os.path.join(archive_folder(env), first.name), "r+b") as file:
        file.seek(first.offset)
        file.write(b"no pack")
    assert [entry.version for entry in read_manifest(archive_folder(env)).values()] == [second.version]


@pytest.mark.skipif(os.name != "posix", reason="links and modes are POSIX's")
def test_a_link_to_another_folder_is_not_used(env, tmp_path):
    """Whoever can move the link could choose what is replayed."""
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", tmp_path / "link")
    with pytest.raises(LogNotReadable, match="folder of your own"):
        read_manifest(str(tmp_path / "link"))
