"""Manifests at a place that others write to: an export follows them to no other file, and none ends a command."""

import json
import os
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

duckdb = pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")

from sessionlog.analytics.sql.event_logs import EventSelection  # noqa: E402 - after the skip
from sessionlog.analytics.usage import aggregate_usage  # noqa: E402 - as above
from sessionlog.engine.place_check import check_place  # noqa: E402 - as above
from sessionlog.engine.place_manifest import EVENTS, FORMATS, NUMBERS, parse_manifest  # noqa: E402 - as above
from sessionlog.errors import NotExported, Problem  # noqa: E402 - as above
from sessionlog.export import manifests  # noqa: E402 - as above
from sessionlog.export.destination import LocalFolder  # noqa: E402 - as above
from sessionlog.export.events import export_events  # noqa: E402 - as above
from sessionlog.export.manifests import Manifest, Manifests  # noqa: E402 - as above
from sessionlog.export.parquet_files import ParquetEncoder  # noqa: E402 - as above
from sessionlog.export.parquet_run import ParquetRun  # noqa: E402 - as above
from sessionlog.export.revisions import Revisions  # noqa: E402 - as above
from tests.export.machines import usage_of  # noqa: E402 - as above
from tests.export.test_parquet import add_log, make_machine  # noqa: E402 - as above
from tests.profiles import examples  # noqa: E402 - as above

FILE = {"path": "", "table": "usage", "rows": 1, "bytes": 9, "sha256": "0" * 64, "schema": 1}
OWN = f"usage/v=1/month=2026-11/machine=m/{'a' * 32}.parquet"
SOUND = {"schema": "sessionlog.export.manifest/1", "machine_id": "m", "files": [FILE | {"path": OWN}]}


class Planted:
    """A machine that has exported a session, and manifests that others put beside its own."""

    def __init__(self, folder):
        self.machine = make_machine(folder, "a")
        add_log(self.machine)
        self.id = self.machine.export().machine_id
        self.team = Path(self.machine.team)
        self.folder = self.team / "manifest/v=1" / f"machine={self.id}"

    def document(self, **changes):
        """The newest manifest, with changes."""
        return json.loads(max(self.folder.iterdir()).read_text()) | changes

    def with_file(self, path):
        """The newest manifest, which lists one file more."""
        return self.document(files=[*self.document()["files"], FILE | {"path": path}])

    def plant(self, document, number=0, time="2020-01-01T00-00-00Z"):
        """Write a manifest as another program would; by its name it is years old."""
        path = self.folder / f"{number:08d}-{time}-0123456789abcdef.json"
        path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
        return path

    def export(self, output=None):
        """Export, with a new revision of the response if its output is given."""
        if output is not None:
            add_log(self.machine, output=output)
        return self.machine.export()


@pytest.fixture
def planted(tmp_path):
    """A place with one machine's export."""
    return Planted(tmp_path)


@pytest.mark.parametrize("kind", ["above the place", "absolute", "another machine's"])
def test_a_manifest_deletes_no_other_file(planted, tmp_path, monkeypatch, kind):
    """Neither the user's nor another machine's; the old manifest that lists it goes."""
    monkeypatch.setattr(manifests, "KEPT", timedelta(seconds=-5))
    other = make_machine(tmp_path, "b")
    add_log(other, "t")
    [kept] = planted.team.glob(f"usage/v=1/*/machine={other.export().machine_id}/*.parquet")
    if kind != "another machine's":
        kept = tmp_path / f"{'f' * 32}.parquet"
        kept.write_text("years of work")
    path = planted.plant(planted.with_file(str(kept) if kind == "absolute" else os.path.relpath(kept, planted.team)))
    planted.export(output=30)
    assert kept.exists()
    assert not path.exists()
    assert usage_of(planted.team, ("session",)).keys() == {("s",), ("t",)}


def test_the_newest_manifest_deletes_no_other_file(planted, tmp_path, monkeypatch):
    """Its number is the next one: what it lists beyond the machine's own files makes it no manifest."""
    monkeypatch.setattr(manifests, "KEPT", timedelta(seconds=-5))
    kept = tmp_path / "thesis.md"
    kept.write_text("years of work")
    path = planted.plant(planted.with_file("../thesis.md"), 2)
    for output in (30, 40):
        done = planted.export(output=output)
    assert (
        f"{path}: it lists '../thesis.md', no file of a place by its machine: it does not count; what it listed is written again"
        in done.notes
    )
    assert kept.exists()
    assert usage_of(planted.team) == planted.machine.usage()


def test_a_linked_folder_is_not_followed(planted, tmp_path, monkeypatch):
    """Neither to delete a file, nor to write or read one; a sentence names the link."""
    monkeypatch.setattr(manifests, "KEPT", timedelta(seconds=-5))
    kept = tmp_path / "mine" / f"{'f' * 32}.parquet"
    kept.parent.mkdir()
    kept.write_text("years of work")
    link = planted.team / "usage/v=1/month=2020-01" / f"machine={planted.id}"
    link.parent.mkdir()
    link.symlink_to(kept.parent)
    planted.plant(planted.with_file(f"usage/v=1/month=2020-01/machine={planted.id}/{kept.name}"))
    [note] = planted.export(output=30).notes
    assert note.startswith(f"old files are not removed: {link}: a link leads to somewhere else")
    assert kept.read_text() == "years of work"
    folder = LocalFolder(str(planted.team))
    for step in (folder.read, folder.remove, lambda name: folder.write(name, b"x")):
        with pytest.raises(NotExported, match="a link leads to somewhere else"):
            step(f"usage/v=1/month=2020-01/machine={planted.id}/{kept.name}")


def test_a_place_may_itself_be_a_link(planted, tmp_path):
    """The user has named it; only what is in it comes from others."""
    os.rename(planted.team, tmp_path / "disk")
    planted.team.symlink_to(tmp_path / "disk")
    assert planted.export(output=30).usage == 1
    assert usage_of(planted.team) == planted.machine.usage()


def test_the_last_number_is_named(planted):
    """After it no manifest could be the next one."""
    path = planted.plant(planted.document(), 99_999_999)
    target = Manifests(LocalFolder(str(planted.team)), planted.id)
    with pytest.raises(NotExported, match=f"{path.name} has the last number that there is: remove it"):
        target.encode(target.newest(), [], None, datetime.now(UTC))


ODD = [
    b"", b"{", b"7", b"[]", b"null", b"NaN", b"\xff\xfe{}", b"\xef\xbb\xbf{}", b"[" * 100_000, b"\0" * 99, b"{}",
    b'{"schema": "sessionlog.export.manifest/1"}', b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    *({"files": files} for files in (7, None, {}, "x", [7], [None], [[]], [{}])),
    *(
        {"files": [FILE | {"path": OWN} | change]} for change in (
            {"path": 7}, {"path": ["x"]}, {"path": None}, {"path": {}}, {"table": 7}, {"table": ["usage"]},
            {"rows": "1"}, {"rows": -1}, {"rows": 10**400}, {"bytes": 1.5}, {"bytes": None},
            {"bytes": float("nan")}, {"sha256": 7}, {"sha256": ""}, {"sha256": "x" * 64}, {"schema": "1"},
        )
    ),
    {"machine_id": 7}, {"machine_id": "other"}, {"machine_name": 7}, {"machine_name": ["x"]}, {"written": 7},
    {"schema": 7}, {"schema": f"sessionlog.export.manifest/{'9' * 5000}"}, {"schema": "sessionlog.export.manifest/²"},
]  # fmt: skip
ODD = [odd if isinstance(odd, bytes) else json.dumps(SOUND | odd).encode() for odd in ODD]


@pytest.mark.parametrize("odd", ODD, ids=[str(number) for number in range(len(ODD))])
def test_an_odd_manifest_is_a_problem(odd):
    """Which is one sentence that names it."""
    found = parse_manifest(odd, "team/x.json", "m")
    assert (found.path, found.detail) == ("team/x.json", "the manifest is damaged: it does not count")


def test_a_damaged_manifest_of_events_names_the_next_step():
    """No export writes it again by itself: only the events of changed logs are compared."""
    found = parse_manifest(b"{", "team/x.json", "m", EVENTS)
    assert found.detail.endswith("it does not count; remove it, and all events are written again")


PATHS = [
    "", "x", "/etc/passwd", "..", f"../{OWN}", f"{OWN}/..", f"./{OWN}", f"{OWN}\n", f"usage/{OWN}", OWN.upper(),
    OWN.replace("/", "\\"), OWN.replace("/", "//"), OWN.replace("machine=m", "machine=n"), OWN.replace("a", "\u00e4"),
    OWN.replace("2026-11", ".."), OWN.replace("2026-11", "٢٠٢٦-١١"), OWN.replace("v=1", "v=²"), OWN + "?x",
    OWN.replace("aaa", "%2e"), "s3://bucket/" + OWN, "manifest/v=1/machine=m/00000001-x.json",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_no_export_writes_is_a_problem(path):
    """Whatever leads elsewhere, on any system."""
    found = parse_manifest(json.dumps(SOUND | {"files": [FILE | {"path": path}]}).encode(), "team/x.json", "m")
    assert "no file of a place by its machine: it does not count" in found.detail


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([*PATHS, *SOUND.values()]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*SOUND, *FILE]), inner, max_size=4),
    max_leaves=8,
)


@examples(100)
@given(st.sampled_from([NUMBERS, EVENTS]), st.dictionaries(st.sampled_from(["machine_name", *SOUND]), VALUES),
    st.dictionaries(st.sampled_from([*FILE]), VALUES))  # fmt: skip
def test_whatever_a_manifest_has_it_is_one_or_a_problem(folder, changes, of_file):
    """And one that counts lists nothing but the machine's own files."""
    files = [FILE | {"path": OWN}, FILE | {"path": OWN} | of_file]
    document = SOUND | {"schema": f"{FORMATS[folder]}/1", "files": files} | changes
    found = parse_manifest(json.dumps(document).encode(), "team/x.json", "m", folder)
    if isinstance(found, Problem):
        assert (found.path, bool(found.detail)) == ("team/x.json", True)
    else:
        assert {file["path"] for file in found.files} <= {OWN}


@pytest.mark.parametrize("odd", [b"", b"[" * 100_000, {"files": [FILE | {"path": ["x"]}]}, {"files": [FILE]}])
def test_an_odd_manifest_ends_no_command(planted, odd):
    """An export, a report and a check name it; it does not count, and the export writes what it may have listed."""
    path = planted.plant(odd if isinstance(odd, bytes) else planted.document(**odd), 2)
    found = aggregate_usage(str(planted.team))
    assert (found.totals.requests, [problem.path for problem in found.problems]) == (1, [str(path)])
    results = [result for result in check_place(str(planted.team), 0) if result.damaged]
    assert [result.path for result in results] == [str(path)]
    done = planted.export(output=30)
    assert (done.usage, [note.startswith(f"{path}: ") for note in done.notes]) == (1, [True])
    assert aggregate_usage(str(planted.team)).totals.output_tokens == 30


def test_a_name_without_a_number_is_no_manifest(planted):
    """Whatever letters look like one; neither is a folder with such a name."""
    for name in ("²-x.json", "00000002²-x.json", "٢٢٢٢٢٢٢٢-x.json", "x.json", "-.json", "00000002.json"):
        (planted.folder / name).write_text("{}")
    (planted.folder / "00000009-x.json").mkdir()
    assert planted.export(output=30).usage == 1
    assert aggregate_usage(str(planted.team)).totals.output_tokens == 30
    assert list(check_place(str(planted.team), 0))


def test_a_listed_file_of_another_program_is_named(planted):
    """With what to do; its digest is that of the manifest, so that it seems to be our own."""
    document = planted.document()
    [file] = [file for file in document["files"] if file["table"] == "usage"]
    for select in (
        "1 AS x",
        "'x' AS record, 1 AS revision, true AS deleted, 0 AS state",
        "1e30 AS record, * EXCLUDE record",
    ):
        path = planted.team / file["path"]
        source = f" FROM '{path}'" if "*" in select else ""
        other = path.with_name(f"{'b' * 32}.parquet")
        duckdb.execute(f"COPY (SELECT {select}{source}) TO '{other}' (FORMAT parquet)")
        changed = file | {
            "path": str(other.relative_to(planted.team)), "sha256": sha256(other.read_bytes()).hexdigest(),
        }  # fmt: skip
        planted.plant(document | {"files": [*document["files"], changed]}, 2)
        with Revisions(str(planted.team.parent / "state.sqlite")) as revisions, ParquetEncoder("m") as encoder:
            run = ParquetRun(LocalFolder(str(planted.team)), "m", Manifest(), revisions, encoder, is_dry=True)
            with pytest.raises(NotExported, match=f"machine m lists {changed['path']}: without the manifest, all"):
                run.read([changed])
        assert aggregate_usage(str(planted.team)).problem_count


def test_manifests_of_events_are_read_by_the_same_rule(planted, tmp_path, monkeypatch):
    """A merge that would read another's file, or delete it a day later, is left out with a sentence; events are written."""
    monkeypatch.setattr("sessionlog.export.events.KEPT", timedelta(seconds=-5))
    kept = tmp_path / "thesis.md"
    kept.write_text("years of work")
    env = planted.machine.env
    selection = EventSelection(paths=[env["SESSIONLOG_DIR"]], env=env, jobs=1)

    def send(output):
        add_log(planted.machine, output=output)
        return export_events(str(planted.team), selection, "m", compact=True)

    send(20)
    assert (send(30).merged, send(40).notes) == (2, ())
    path = max(planted.team.glob("events-manifest/v=1/machine=m/*.json"))
    for data in (path.read_bytes().replace(b'"path": "', b'"path": "../thesis.md'), b"7", b"[" * 100_000):
        odd = path.with_name("2026-11-20T10-00-00Z-0123456789abcdef.json")
        odd.write_bytes(data)
        done = send(50 + len(data))
        [note] = done.notes
        assert note.startswith(f"old files are not removed: {odd}: ")
        assert done.events > 0
        assert [result.path for result in check_place(str(planted.team), 0) if result.damaged] == [str(odd)]
    odd.unlink()
    assert send(60).notes == ()
    for newest in path.parent.iterdir():
        newest.write_bytes(b"{}")
    [note] = [note for note in send(70).notes if "merged" in note]
    assert note.endswith("the manifest is damaged: it does not count; remove it, and all events are written again")
    for newest in path.parent.iterdir():
        newest.unlink()
    assert (send(80).notes, kept.exists()) == ((), True)
