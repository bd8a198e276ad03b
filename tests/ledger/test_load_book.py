"""From paths to a book: every log once, whatever is wrong with some of them."""

import os
from pathlib import Path

from sessionlog.ledger.ask import load_book
from tests.ledger.entries import PRICES
from tests.sources.logs import answered, start, write_log


def sessions(book):
    return [name for (name,) in book.query("SELECT session FROM sessions ORDER BY 1", {})]


def test_folders_are_read_to_the_bottom_and_files_once(tmp_path):
    """A log named twice, linked, or named together with its folder is one session."""
    first = write_log(tmp_path / "a.jsonl", start(), answered())
    write_log(tmp_path / "deep" / "er" / "b.jsonl", start(), answered())
    (tmp_path / "link.jsonl").symlink_to(first)
    book = load_book([str(tmp_path), first, str(tmp_path / "deep")], PRICES)
    assert sessions(book) == ["a", "b"]


def test_a_file_that_cannot_be_read_is_a_problem_among_the_others(tmp_path):
    """The rest of the report stays."""
    write_log(tmp_path / "good.jsonl", start(), answered())
    os.mkfifo(tmp_path / "pipe.jsonl")
    book = load_book([str(tmp_path)], PRICES)
    assert sessions(book) == ["good"]
    assert [(os.path.basename(p.path), p.kind) for p in book.problems] == [("pipe.jsonl", "unreadable")]


def test_damage_of_a_file_without_events_is_in_the_book(tmp_path):
    """A report says what it skipped, also where nothing was left."""
    write_log(tmp_path / "bad.jsonl", b"not json\n", b"nor this\n")
    book = load_book([str(tmp_path)], PRICES)
    assert (sessions(book), book.problem_count) == ([], 2)


def test_a_file_that_vanishes_before_it_is_read_is_a_problem(tmp_path):
    """Agents clean up while reports run."""
    paths = [write_log(tmp_path / f"{name}.jsonl", start(), answered()) for name in "ab"]
    book = load_book(paths, PRICES, progress=lambda done, total: Path(paths[1]).unlink(missing_ok=True))
    assert (sessions(book), [p.kind for p in book.problems]) == (["a"], ["unreadable"])


def test_progress_tells_how_far_it_is(tmp_path):
    """Once for each file, up to all of them."""
    for name in "abc":
        write_log(tmp_path / f"{name}.jsonl", start())
    steps = []
    load_book([str(tmp_path)], PRICES, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(1, 3), (2, 3), (3, 3)]
    (tmp_path / "d.json").write_text("{}")  # no log of anybody's counts as done
    steps.clear()
    load_book([str(tmp_path)], PRICES, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(2, 4), (3, 4), (4, 4)]


def test_no_paths_give_an_empty_book():
    """There is nothing to fail for."""
    book = load_book([], PRICES)
    assert (sessions(book), book.problem_count) == ([], 0)
