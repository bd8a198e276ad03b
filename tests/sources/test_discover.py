"""Discovery: every log once and with its source, on whatever way it was reached, and no silence about the others."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.errors import Problem
from sessionlog.files import work_folder
from sessionlog.ledger.scanning import scan_or_explain
from sessionlog.reader.walk import walk_files
from sessionlog.sources.check import check_foreign
from sessionlog.sources.discover import discover, find_logs, recognise
from sessionlog.sources.find import resolve_log
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import all_sources, choose_sources, load_source
from tests.sources.homes import all_cases, build_home, environment, truth_of
from tests.sources.logs import answered, start, write_log
from tests.sources.plugin.scribe import SOURCE
from tests.sources.plugin.scrolls import POINT, installed, story, write_scroll

NOBODY = 65534
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture(autouse=True)
def plug_in():
    """Scribe is installed."""
    with installed(POINT):
        yield


@pytest.fixture
def home(tmp_path):
    """A home with two scrolls in Scribe's place, and a native log elsewhere."""
    folder = tmp_path / "home"
    write_scroll(folder / ".scribe" / "one.scroll", *story())
    write_scroll(folder / ".scribe" / "deep" / "two.scroll", *story(name="q"))
    write_log(folder / "logs" / "ours.jsonl", start(), answered())
    return folder


def env(home):
    return {"HOME": str(home), "SESSIONLOG_DIR": str(home / "logs")}


def told(items, folder):
    """(source or kind, path below the folder) of each."""
    return [
        (item.kind if isinstance(item, Problem) else item.source.id, os.path.relpath(item.path, folder))
        for item in items
    ]


SCROLLS = [("scribe", ".scribe/deep/two.scroll"), ("scribe", ".scribe/one.scroll")]
OURS = ("native", "logs/ours.jsonl")


# --- all agents


def test_each_source_looks_in_its_places(home):
    """Ours first; what other packages add comes with them."""
    assert told(discover(env(home), all_sources()), home) == [OURS, *SCROLLS]


def test_only_chosen_sources_look(home):
    """The others' logs are not even listed."""
    assert told(discover(env(home), choose_sources(["scribe"])), home) == SCROLLS
    assert told(discover(env(home), choose_sources(["claude-code"])), home) == []


def test_variables_move_the_places(home, tmp_path):
    """What the agent obeys is obeyed."""
    moved = {**env(home), "SCRIBE_HOME": str(tmp_path / "none")}
    assert told(discover(moved, all_sources()), home) == [OURS]


def test_a_place_that_is_a_link_is_looked_at(home, tmp_path):
    """People keep their settings elsewhere and link them."""
    (home / ".scribe").rename(tmp_path / "kept")
    (home / ".scribe").symlink_to(tmp_path / "kept")
    assert told(discover(env(home), all_sources()), home) == [OURS, *SCROLLS]


@pytest.mark.skipif(ROOT, reason="root looks everywhere")
def test_a_place_that_may_not_be_looked_at_is_a_problem(home):
    """It is not the same as a place that is not there."""
    (home / ".scribe").chmod(0)
    try:
        assert told(discover(env(home), choose_sources(["scribe"])), home) == [("unreadable", ".scribe")]
    finally:
        (home / ".scribe").chmod(0o700)


def test_a_place_that_cannot_be_reached_is_a_problem(home):
    """A folder on the way that cannot be passed hides logs; a loop of links is such a way for everybody."""
    (home / "loop").symlink_to(home / "loop")
    moved = {**env(home), "SCRIBE_HOME": str(home / "loop" / "scrolls")}
    [problem] = discover(moved, choose_sources(["scribe"]))
    assert (problem.kind, problem.severity, problem.path) == ("unreadable", "damage", f"{home}/loop/scrolls")


@pytest.mark.parametrize("place", ["no/such/place", ".scribe/one.scroll/below"])
def test_a_place_that_is_not_there_is_nothing(home, place):
    """Nobody has every agent."""
    assert list(discover({**env(home), "SCRIBE_HOME": str(home / place)}, choose_sources(["scribe"]))) == []


def test_places_that_overlap_give_each_log_once(home):
    """A source that is told of one folder on two ways."""
    (home / "again").symlink_to(home / ".scribe")
    both = (str(home / ".scribe"), str(home / ".scribe" / "deep"), str(home / "again"))
    from msgspec.structs import replace

    twice = replace(SOURCE, locate=lambda _: both)
    assert told(discover(env(home), [twice]), home) == SCROLLS


# --- paths


def paths(home, *names):
    return told(find_logs([str(home / name) for name in names], env(home)), home)


@pytest.mark.parametrize(
    "names",
    [
        (".",), (".", "."), (".", ".scribe"), (".", ".scribe/one.scroll", "logs"), (".scribe/../.",), ("logs/..", ".scribe/one.scroll"),
    ],
)  # fmt: skip
def test_every_file_counts_once_however_it_is_named(home, names):
    """A folder, the folder in it, a file in that."""
    assert sorted((kind, os.path.normpath(path)) for kind, path in paths(home, *names)) == sorted([OURS, *SCROLLS])


def test_links_within_one_owner_are_followed_and_count_once(home):
    """To files and to folders, in whatever order they come."""
    (home / "a-link.scroll").symlink_to(home / ".scribe" / "one.scroll")
    (home / ".scribe" / "b-folder").symlink_to(home / ".scribe" / "deep")
    assert sorted(os.path.realpath(home / path) for _, path in paths(home, ".")) == sorted(
        str(home / path) for _, path in [OURS, *SCROLLS]
    )


def test_loops_are_cut(home):
    """A folder that leads to itself, or to one above it."""
    (home / ".scribe" / "up").symlink_to(home)
    (home / ".scribe" / "self").symlink_to(home / ".scribe" / "self")
    assert len(paths(home, ".")) == 3
    assert len(paths(home, ".scribe")) >= 2


def test_folders_may_be_nested_deeper_than_python_calls(tmp_path):
    """A hostile folder does not end a report."""
    here, names = os.getcwd(), ["d"] * 1200
    os.chdir(tmp_path)
    try:
        for name in names:
            os.mkdir(name)
            os.chdir(name)
        Path("x.jsonl").touch()
        assert [Path(p).name for p in walk_files([str(tmp_path)], lambda name: name.endswith("l"))] == ["x.jsonl"]
    finally:
        with suppress(FileNotFoundError):
            os.unlink("x.jsonl")
        for name in names:
            os.chdir("..")
            os.rmdir(name)
        os.chdir(here)


@pytest.mark.skipif(not ROOT, reason="only root gives files away")
def test_other_peoples_links_are_not_followed(home):
    """Whoever may place a link in our folder does not choose what we read."""
    (home / "logs" / "link.jsonl").symlink_to(home / "logs" / "ours.jsonl")
    (home / "logs" / "a-link.jsonl").symlink_to(home / ".scribe" / "one.scroll")
    os.lchown(home / "logs" / "a-link.jsonl", NOBODY, NOBODY)
    assert paths(home, "logs") == [("native", "logs/link.jsonl")]


def test_a_folder_inside_a_place_belongs_to_its_agent(home):
    """Its logs are listed by the source, though their names are of no kind that is looked at elsewhere."""
    assert paths(home, ".scribe/deep") == [("scribe", ".scribe/deep/two.scroll")]


def test_a_folder_of_logs_that_were_copied_is_recognised_by_content(home, tmp_path):
    """Away from its place, under names that are looked at."""
    content = (home / ".scribe" / "one.scroll").read_bytes()
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "scroll.jsonl").write_bytes(content)
    (tmp_path / "backup" / "scroll.json").write_bytes(content)
    assert told(find_logs([str(tmp_path / "backup")], env(home)), tmp_path) == [
        ("scribe", "backup/scroll.json"), ("scribe", "backup/scroll.jsonl"),
    ]  # fmt: skip


def test_beside_a_log_its_packed_copy_does_not_count(home):
    """Nor when both are named."""
    content = (home / "logs" / "ours.jsonl").read_bytes()
    (home / "logs" / "ours.jsonl.gz").write_bytes(content)
    assert paths(home, "logs") == [OURS]
    assert paths(home, "logs/ours.jsonl", "logs/ours.jsonl.gz") == [OURS]


def test_files_of_other_kinds_in_a_folder_are_no_findings(home):
    """Most of what lies in folders is no log; what looks like one and is unknown is news, not damage."""
    for name in ("notes.txt", "photo.jpg", "README", "one.jsonl.lock"):
        (home / "logs" / name).write_bytes(b"hello")
    (home / "logs" / "package.json").write_bytes(b'{"name": "x"}')
    (home / "logs" / "other.jsonl").write_bytes(b'{"who": "knows"}\n')
    found = [item for item in find_logs([str(home / "logs")], env(home)) if isinstance(item, Problem)]
    assert [(Path(p.path).name, p.kind, p.severity) for p in found if "lock" not in p.path] == [
        ("other.jsonl", "unknown_format", "info"), ("package.json", "unknown_format", "info"),
    ]  # fmt: skip
    assert {p.severity for p in found} == {"info"}


def test_a_file_that_is_named_is_somebodys(home):
    """Whatever it is called; what nobody knows is ours to name what is wrong with it."""
    (home / "odd").write_bytes((home / ".scribe" / "one.scroll").read_bytes())
    (home / "notes.txt").write_bytes(b"hello")
    assert paths(home, "odd", "notes.txt") == [("scribe", "odd"), ("native", "notes.txt")]


def test_paths_are_narrowed_by_sources(home):
    """Of a folder, and of files that are named."""
    only = choose_sources(["scribe"])
    named = [str(home / "logs" / "ours.jsonl"), str(home / ".scribe" / "one.scroll")]
    assert told(find_logs([str(home)], env(home), only), home) == SCROLLS
    assert told(find_logs(named, env(home), only), home) == SCROLLS[1:]


@pytest.mark.skipif(ROOT, reason="root reads everything")
def test_a_folder_that_cannot_be_listed_is_a_problem(home):
    """Beside the others."""
    (home / "logs").chmod(0)
    try:
        assert ("unreadable", "logs") in paths(home, ".")
    finally:
        (home / "logs").chmod(0o700)


# --- by content

NATIVE = b'{"session_id":"s","seq":0,"type":"session.start","ts":"2026-11-20T10:00:00Z","data":{"v":1}}\n'
SCRIBE = b'{"scribe":"ask","at":"2026-11-20T10:00:00Z","text":"x"}\n'


@pytest.mark.parametrize(
    ("name", "content", "source"),
    [
        ("s.jsonl", NATIVE, "native"),
        ("s.jsonl", b"\xef\xbb\xbf" + NATIVE, "native"),
        ("s.jsonl", NATIVE.replace(b":", b": ").replace(b",", b", "), "native"),
        ("s.jsonl", b"torn, and then\n" + NATIVE, "native"),
        ("s.jsonl", NATIVE + SCRIBE, "native"),
        ("s.jsonl", b"", "native"),
        ("s.jsonl", b"garbage\n", "native"),
        ("s.jsonl", SCRIBE, "scribe"),
        ("s.jsonl", b"torn\n" + SCRIBE, "scribe"),
        ("whatever", SCRIBE, "scribe"),
        ("s.jsonl", b'{"who":"knows"}\n', None),
        ("s.json", NATIVE, None),
        ("s.txt", b"hello", None),
    ],
)
def test_a_log_is_known_by_its_content(tmp_path, name, content, source):
    """Folder and name decide nothing, but that only .jsonl files are ours without being named."""
    (tmp_path / name).write_bytes(content)
    found = recognise(str(tmp_path / name))
    assert (None if isinstance(found, Problem) else found.source.id) == source
    if source is None:
        assert (found.kind, found.severity) == ("unknown_format", "info")


def test_a_log_that_cannot_be_opened_is_ours_to_name(tmp_path):
    """Its name says that it is a log; of others nobody knows."""
    assert recognise(str(tmp_path / "gone.jsonl")).source.id == "native"
    assert recognise(str(tmp_path / "gone.db")).kind == "unknown_format"


@pytest.mark.parametrize(
    "content",
    [
        b'{"SESSION_ID":"s","Seq":0,"Type":"session.start","TS":"2026-11-20T10:00:00Z"}\n',
        b'{"session_id":"x","se',
    ],
    ids=["keys-in-any-case", "torn-first-line"],
)
def test_odd_logs_of_ours_are_ours(tmp_path, content):
    """However the original spelled them, and however little of them is left."""
    (tmp_path / "s.jsonl").write_bytes(content)
    assert [(log.source.id, log.path) for log in find_logs([str(tmp_path)], {})] == [
        ("native", str(tmp_path / "s.jsonl"))
    ]


def test_a_log_that_is_a_folder_is_found_under_any_path(tmp_path):
    """Some agents keep a small file for each message: a backup of them is as good as the original."""
    home = build_home("opencode/legacy-files", tmp_path)
    backup = tmp_path / "backup"
    shutil.copytree(home / ".local" / "share" / "opencode", backup)
    found = [item for item in find_logs([str(backup)], {}) if isinstance(item, Log)]
    assert {log.source.id for log in found} == {"opencode"}
    report = aggregate_usage(str(backup))
    assert report.totals.requests == sum(row["requests"] for row in truth_of("opencode/legacy-files")["rows"])
    log, _ = resolve_log(found[0].path, None, {})
    assert log == found[0]


def test_a_source_that_fails_costs_only_its_own_log(tmp_path, monkeypatch):
    """The report names it and goes on."""
    (tmp_path / "s.jsonl").write_bytes(
        b'{"session_id":"s","seq":0,"type":"session.start","ts":"2026-11-20T10:00:00Z"}\n'
    )

    def fail(*_):
        raise ZeroDivisionError("oops")

    broken = replace(load_source("native"), scan=fail, check=fail)
    log = Log(source=broken, path=str(tmp_path / "s.jsonl"))
    assert [str(p).split(" ", 1)[1] for p in scan_or_explain(log)[0].problems.first] == [
        "source_failed native: ZeroDivisionError: oops"
    ]
    assert check_foreign(log).counts == {"source_failed": 1}


@pytest.mark.parametrize("case", sorted({case.split("/")[0]: case for case in all_cases()}.values()))
def test_what_a_killed_repair_leaves_is_no_log(tmp_path, case):
    """Beside every agent's logs: an unfinished copy and a replaced file are taken for a log by no source."""
    home = build_home(case, tmp_path)
    before = list(discover(environment(case, home), all_sources()))
    assert before
    for item in before:
        if os.path.isfile(item.path):
            os.mkdir(work_folder(item.path))
            for name in ("new", "replaced-5"):
                shutil.copy(item.path, os.path.join(work_folder(item.path), name))
    assert list(discover(environment(case, home), all_sources())) == before
