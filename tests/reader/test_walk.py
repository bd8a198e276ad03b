"""Which files are logs: every file once, in a stable order, loops cut."""

import os

import pytest

from sessionlog.errors import Problem
from sessionlog.reader.walk import walk_logs

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def folder(tmp_path):
    """Logs and other files in folders within folders."""
    for name in ("b.jsonl", "a.jsonl", "c.jsonl.gz", "d.jsonl.zst", "notes.txt", "e.jsonl.quarantine", "f.json"):
        (tmp_path / name).write_bytes(b"")
    for name in ("2026/11/x.jsonl", "2026/10/y.jsonl", "empty/.keep", "B/z.jsonl", ".hidden.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def walked(*paths):
    return list(walk_logs([str(path) for path in paths]))


def names(folder, *paths):
    return [os.path.relpath(path, folder) for path in walked(*paths)]


def test_folders_are_walked_to_the_bottom(folder):
    """Every log of every folder, by suffix, sorted by the bytes of the names within each folder."""
    assert names(folder, folder) == [
        ".hidden.jsonl",
        "2026/10/y.jsonl",
        "2026/11/x.jsonl",
        "B/z.jsonl",
        "a.jsonl",
        "b.jsonl",
        "c.jsonl.gz",
        "d.jsonl.zst",
    ]


def test_the_order_of_the_arguments_is_kept(folder):
    """Paths come in the order in which they were named."""
    assert names(folder, folder / "b.jsonl", folder / "2026", folder / "a.jsonl") == [
        "b.jsonl",
        "2026/10/y.jsonl",
        "2026/11/x.jsonl",
        "a.jsonl",
    ]


def test_a_path_given_by_name_needs_no_suffix(folder):
    """Who names a file means it; a missing one is left to the reader to complain about."""
    assert names(folder, folder / "notes.txt", folder / "gone.jsonl") == ["notes.txt", "gone.jsonl"]
    assert walked("nul\0byte") == ["nul\0byte"]


def test_no_path_no_log():
    """Nothing is walked unasked."""
    assert walked() == []


def test_p13_a_file_named_twice_is_read_once(folder):
    """By name and by folder, through a hard link or a symbolic link, in whichever spelling."""
    os.link(folder / "a.jsonl", folder / "z-hard.jsonl")
    (folder / "z-soft.jsonl").symlink_to("b.jsonl")
    found = names(folder, folder / "a.jsonl", folder / "2026" / ".." / "a.jsonl", folder, folder / "2026")
    assert found.count("a.jsonl") == 1
    assert "z-hard.jsonl" not in found
    assert "z-soft.jsonl" not in found
    assert len(found) == 8


def test_a_link_to_a_log_elsewhere_is_followed(folder, tmp_path_factory):
    """The owner's own links lead on, to files and to folders."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "far.jsonl").write_bytes(b"")
    (folder / "link").symlink_to(elsewhere, target_is_directory=True)
    assert "link/far.jsonl" in names(folder, folder)


def test_p13_loops_are_cut(folder):
    """A folder that contains itself, and a link that leads nowhere but to itself, end the walk there."""
    (folder / "2026" / "up").symlink_to(folder, target_is_directory=True)
    (folder / "self").symlink_to("self")
    (folder / "ping").symlink_to("pong")
    (folder / "pong").symlink_to("ping")
    assert len(walked(folder)) == 8


def test_a_dangling_link_is_left_to_the_reader(folder):
    """A log whose target is gone is named, not passed over."""
    (folder / "gone.jsonl").symlink_to("nowhere")
    assert "gone.jsonl" in names(folder, folder)


@pytest.mark.skipif(not ROOT, reason="only root can make a link of another user")
def test_p13_other_peoples_links_are_not_followed(folder):
    """A link made by somebody else could lead anywhere."""
    (folder / "trap.jsonl").symlink_to(folder / "notes.txt")
    (folder / "trap").symlink_to("/etc", target_is_directory=True)
    os.lchown(folder / "trap.jsonl", 12345, 12345)
    os.lchown(folder / "trap", 12345, 12345)
    assert len(walked(folder)) == 8


def test_a_problem_of_a_folder_has_no_line(folder, monkeypatch):
    """It is about the folder as a whole."""

    def scandir(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", scandir)
    [problem] = walk_logs([str(folder)])
    assert (problem.path, problem.line, problem.offset, problem.kind) == (str(folder), 0, 0, "unreadable")


def test_a_folder_that_cannot_be_listed_is_a_problem(folder, monkeypatch):
    """The others are walked all the same."""
    real = os.scandir

    def scandir(path):
        if str(path).endswith("2026"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = walked(folder)
    [problem] = [item for item in found if isinstance(item, Problem)]
    assert (problem.path, problem.kind, problem.detail) == (str(folder / "2026"), "unreadable", "permission denied")
    assert len(found) == 7


class Unreachable:
    """An entry whose target may not be looked at."""

    def __init__(self, entry):
        self.path, self.name = entry.path, entry.name

    def is_dir(self):
        raise PermissionError(13, "Permission denied")


def test_a_link_into_a_closed_folder_is_a_problem(folder, monkeypatch):
    """What lies behind it may be logs: it is named."""
    real = os.scandir
    monkeypatch.setattr(
        os, "scandir", lambda path: [Unreachable(entry) if entry.name == "B" else entry for entry in real(path)]
    )
    [problem] = [item for item in walked(folder) if isinstance(item, Problem)]
    assert (problem.path, problem.kind) == (str(folder / "B"), "unreadable")


def test_names_that_are_not_utf8(tmp_path):
    """A file name is bytes: one that is no text is walked, in its place."""
    for name in (b"\xff.jsonl", b"a.jsonl", "é.jsonl".encode()):
        with open(os.fsencode(tmp_path) + b"/" + name, "wb"):
            pass
    assert [os.fsencode(os.path.basename(path)) for path in walked(tmp_path)] == [
        b"a.jsonl",
        "é.jsonl".encode(),
        b"\xff.jsonl",
    ]
