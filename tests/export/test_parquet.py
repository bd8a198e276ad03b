"""Export to parquet: DuckDB counts in the files what the ledger counts, once, whatever changes in between."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

duckdb = pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")

from sessionlog.errors import InvalidQuery, MissingExtra, NotExported  # noqa: E402 - after the skip
from sessionlog.export import parquet_run  # noqa: E402 - as above
from sessionlog.export.destination import LocalFolder, RemoteFolder  # noqa: E402 - as above
from sessionlog.export.manifests import Manifests  # noqa: E402 - as above
from sessionlog.export.revisions import Revisions  # noqa: E402 - as above
from sessionlog.ledger.opening import open_ledger  # noqa: E402 - as above
from sessionlog.ledger.parquet_schema import TABLES  # noqa: E402 - as above
from sessionlog.ledger.refreshing import refresh  # noqa: E402 - as above
from sessionlog.ledger.upkeep import find_forgettable, forget  # noqa: E402 - as above
from tests.export.conftest import USAGE, event  # noqa: E402 - as above
from tests.export.machines import PAGE, Machine, counted, rows_of, usage_of  # noqa: E402 - as above
from tests.ledger.entries import PRICES, record, scan_of, session  # noqa: E402 - as above
from tests.ledger.test_copies import LOGS  # noqa: E402 - as above
from tests.ledger.test_wire import SESSIONS, at, in_log, made, on_wire  # noqa: E402 - as above
from tests.profiles import examples  # noqa: E402 - as above
from tests.sources.homes import all_cases, build_home  # noqa: E402 - as above

QUICK = (
    "claude-code/every-kind-of-copy", "claude-code/forks", "codex/models", "gemini/cli-home", "opencode/v1-database",
)  # fmt: skip
RECORDS = """
SELECT s.session, r.time_ns, r.copy_rank, r.requests, r.failed, r.input, r.output, r.cost_nano, r.estimate_nano,
    r.latency_ms, r.active_ms, l.provider, l.model, l.quality, l.project, l.branch, l.agent
FROM records r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id
"""
REQUESTS = """
SELECT session, time_ns, requests, failed, input_tokens, output_tokens, recorded_nano_usd, estimated_nano_usd,
    latency_ms, active_ms, provider, model, quality, project, branch, agent
FROM requests
"""


class _KilledError(Exception):
    """What ends an export in the place of a kill."""


def _killed():
    raise _KilledError


@pytest.fixture
def machine(tmp_path):
    """A machine with the native logs of a folder, `add` of which writes one."""
    return make_machine(tmp_path, "a")


def make_machine(folder, name, team="team"):
    """A machine in a folder, with an empty home."""
    home = folder / name / "home"
    home.mkdir(parents=True)
    return Machine(folder / name, home, folder / team)


def add_log(machine, name="s", *, output=20, project="/w/api", responses=1, ended=True):
    """Write a native log with responses and a tool call; returns its path."""
    path = Path(machine.env["SESSIONLOG_DIR"]) / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [event(0, 0, "session.start", v=1, provider="anthropic", model="claude-opus-4-5", work_dir=project)]
    for number in range(responses):
        lines += [
            event(1, 1 + number, "llm.request", model="claude-opus-4-5", messages=[{"role": "user", "content": "secret words"}]),
            event(2, 2 + number, "llm.response", model="claude-opus-4-5", usage={**USAGE, "output": output}, latency_ms=500),
        ]  # fmt: skip
    lines.append(event(3, 50, "tool.call", tool="bash", input={"command": "ls"}, output="secret", duration_ms=7))
    lines += [event(4, 55, "session.end", status="success")] if ended else []
    path.write_text("".join(lines).replace('"session_id": "s"', f'"session_id": "{name}"'))
    return path


def fill(machine, sessions):
    """Insert what scans of logs gave into a machine's ledger, as if the logs were deleted since."""
    folder = machine.env["SESSIONLOG_DIR"]
    os.makedirs(folder, exist_ok=True)
    book = open_ledger(machine.ledger, PRICES)
    for one in sessions:
        book.add_scan(
            scan_of(
                type(one)(
                    **{name: getattr(one, name) for name in one.__struct_fields__} | {"path": f"{folder}/{one.path}"}
                )
            )
        )
    book.reconcile()
    refresh(book, machine.env)
    rows = book.query(RECORDS, {})
    book.close()
    return rows


def agree(machine, rows):
    """Whether DuckDB counts what the ledger counts, row by row."""
    machine.export(prices=PRICES)
    if not os.path.exists(machine.team):
        return rows == []
    with counted(machine.team) as connection:
        found = connection.execute(REQUESTS).fetchall()
    expected = [(*row[:2], *row[3:]) for row in rows]
    return sorted(map(repr, found)) == sorted(repr((*row[:3], bool(row[3]), *row[4:])) for row in expected)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in QUICK else pytest.mark.slow) for case in all_cases()]
)
def test_the_page_s_sql_counts_what_the_report_does(tmp_path, case):
    """By all names; tokens, requests and nano-dollars; a second export writes nothing."""
    machine = Machine(tmp_path, build_home(case, tmp_path / "case"), tmp_path / "team")
    if machine.export().usage:
        assert usage_of(machine.team) == machine.usage() != {}
    else:
        assert machine.usage() == {}
    assert machine.export().files == 0


@pytest.mark.slow
@pytest.mark.skipif("SESSIONLOG_REAL" not in os.environ, reason="$SESSIONLOG_REAL names no homes of real clients")
def test_logs_of_real_clients_count_the_same(tmp_path):
    """The same for every home."""
    for home in sorted(path for path in Path(os.environ["SESSIONLOG_REAL"]).iterdir() if path.is_dir()):
        machine = Machine(tmp_path / home.name, home, tmp_path / home.name / "team")
        machine.folder.mkdir()
        if machine.export().usage:
            assert usage_of(machine.team) == machine.usage(), home


@examples(24)
@given(LOGS)
def test_copies_are_decided_by_the_same_rule(tmp_path_factory, entries):
    """Rank, family, superseding sessions, numbers of one copy and place of another."""
    machine = make_machine(tmp_path_factory.mktemp("copies"), "a")
    sessions = [session(name, record(**fields), path=f"{path}.jsonl") for name, path, fields in entries]
    assert agree(machine, fill(machine, sessions))


@examples(24)
@given(st.data())
def test_requests_on_the_wire_count_once(tmp_path_factory, data):
    """Where it is in a log, or on the wire alone."""
    machine = make_machine(tmp_path_factory.mktemp("wire"), "a")
    sessions = [made(entry, number) for number, entry in enumerate(data.draw(SESSIONS))]
    assert agree(machine, fill(machine, sessions))


def test_a_log_and_the_wire_of_it_count_once_on_two_machines(tmp_path):
    """Of which one knows only the log."""
    log = in_log("s", at(7, response_id="a"), at(8, input=99, response_id="b"))
    both, alone = make_machine(tmp_path, "a"), make_machine(tmp_path, "b")
    fill(both, [on_wire("w", at(7, response_id="a")), log])
    fill(alone, [log])
    both.export(prices=PRICES)
    alone.export(prices=PRICES)
    with counted(both.team) as connection:
        found = connection.execute("SELECT session, input_tokens FROM requests ORDER BY 2").fetchall()
    assert found == [("s", 10), ("s", 99)]


def test_a_log_of_which_the_wire_knows_better_counts_once_on_two_machines(tmp_path):
    """What the log has of a response in part is replaced on both."""
    log = in_log("s", at(7, response_id="a", output=1, quality="partial"), at(8, input=99, response_id="b"))
    both, alone = make_machine(tmp_path, "a"), make_machine(tmp_path, "b")
    fill(both, [on_wire("w", at(7, response_id="a")), log])
    fill(alone, [log])
    both.export(prices=PRICES)
    alone.export(prices=PRICES)
    with counted(both.team) as connection:
        found = connection.execute("SELECT session, input_tokens, output_tokens FROM requests ORDER BY 2").fetchall()
    assert found == [("s", 10, 5), ("s", 99, 5)]


def test_a_second_export_writes_nothing(machine):
    """Also without what is known of the destination beside it."""
    add_log(machine)
    first = machine.export()
    assert (first.usage, first.tools, first.sessions, first.files, first.unchanged) == (1, 1, 1, 3, 0)
    for again in (machine.export(), lost_state(machine).export()):
        assert (again.files, again.manifest, again.unchanged) == (0, "", 3)
    assert len(list(Path(machine.team).glob("manifest/v=1/*/*.json"))) == 1


def lost_state(machine):
    """The machine without what it knows of destinations."""
    for path in Path(machine.env["XDG_STATE_HOME"]).glob("sessionlog/export/*"):
        path.unlink()
    return machine


@pytest.mark.parametrize("loses_state", [False, True])
def test_an_answer_that_grew_is_a_second_revision(machine, loses_state):
    """And counts once."""
    add_log(machine, output=20, ended=False)
    machine.export()
    add_log(machine, output=30, ended=False)
    if loses_state:
        lost_state(machine)
    done = machine.export()
    assert (done.usage, done.unchanged) == (1, 2)
    assert sorted(rows_of(machine.team, columns="revision, output_tokens")) == [(1, 20), (2, 30)]
    assert usage_of(machine.team) == machine.usage()


def test_what_is_forgotten_is_deleted_in_the_same_folder(machine):
    """By a tombstone that has nothing else; a log that is back counts again, as a later revision."""
    path = add_log(machine)
    machine.export()
    content = path.read_text()
    path.unlink()
    assert machine.export().files == 0
    book = open_ledger(machine.ledger, PRICES)
    refresh(book, machine.env)
    assert forget(book, find_forgettable(book)) == 1
    book.close()
    done = machine.export()
    assert (done.deleted, done.usage) == (3, 0)
    _, (*stone, day) = sorted(rows_of(machine.team, columns="revision, deleted, state, source, output_tokens, month"))
    assert (stone, day) == ([2, True, 0, None, None], "2026-11")
    assert usage_of(machine.team) == {}
    path.write_text(content)
    machine.export()
    assert usage_of(machine.team) == machine.usage() != {}
    assert max(rows_of(machine.team, columns="revision")) == (3,)


def test_a_row_that_moves_to_another_month_is_deleted_there(machine):
    """So that a reader of one month's folder does not count it."""
    path = add_log(machine)
    machine.export()
    path.write_text(path.read_text().replace("2026-11-20T", "2026-12-20T"))
    machine.export()
    found = sorted(rows_of(machine.team, columns="month, revision, deleted"))
    assert found == [("2026-11", 1, False), ("2026-11", 2, True), ("2026-12", 3, False)]
    assert usage_of(machine.team) == machine.usage()


def test_costs_stay_as_they_were_exported(machine):
    """At other prices, also where the row is written again because another copy counts now; a changed row has new ones."""
    fill(machine, [session("s", record(key="k"), path="b.jsonl")])
    machine.export(prices=PRICES)
    [(before,)] = rows_of(machine.team, columns="estimated_nano_usd")
    fill(machine, [session("t", record(key="k"), path="a.jsonl")])
    assert machine.export().usage == 2
    found = dict.fromkeys(rows_of(machine.team, columns="session, revision, counts, estimated_nano_usd"))
    assert set(found) == {("s", 1, True, before), ("s", 2, False, before), ("t", 1, True, None)}


def test_an_export_that_was_killed_is_not_read(machine, monkeypatch):
    """Files without a manifest count for no reader; the next export writes the same files, and a manifest."""
    add_log(machine)
    with monkeypatch.context() as patch:
        patch.setattr(Manifests, "write", lambda *_: _killed())
        with pytest.raises(_KilledError):
            machine.export()
    half = sorted(Path(machine.team).rglob("*.parquet"))
    assert len(half) == 3
    assert machine.export().files == 3
    assert sorted(Path(machine.team).rglob("*.parquet")) == half
    assert usage_of(machine.team) == machine.usage() != {}


def test_an_export_that_was_killed_after_its_manifest_is_whole(machine, monkeypatch):
    """The destination is the truth: what it has is not written again."""
    add_log(machine)
    with monkeypatch.context() as patch:
        patch.setattr(Revisions, "commit", lambda *_: _killed())
        with pytest.raises(_KilledError):
            machine.export()
    assert machine.export().files == 0
    assert usage_of(machine.team) == machine.usage() != {}


def test_an_emptied_destination_is_filled_again(machine):
    """Not only with what is new."""
    add_log(machine)
    machine.export()
    os.rename(machine.team, f"{machine.team}-moved")
    assert machine.export().usage == 1


def test_a_damaged_destination_is_named(machine):
    """What to do about a half file is part of the sentence; what a half manifest listed is written again."""
    add_log(machine)
    done = machine.export()
    file = next(Path(machine.team).rglob("usage/**/*.parquet"))
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(NotExported, match=rf"{file.name} is damaged: its digest is not that of the manifest"):
        lost_state(machine).export()
    manifest = Path(machine.team, done.manifest)
    half = manifest.with_name("00000001-2020-01-01T00-00-00Z-0.json")
    half.write_bytes(manifest.read_bytes()[:100])
    manifest.unlink()
    again = machine.export()
    assert (again.usage, machine.export().files) == (1, 0)
    words = "the manifest is damaged: it does not count; what it listed is written again"
    assert again.notes == (f"{half}: {words}",)
    half.unlink()
    assert usage_of(machine.team) == machine.usage()


def test_two_exports_do_not_run_at_once(machine):
    """The second one ends with a sentence, and writes nothing."""
    add_log(machine)
    machine.export()
    [state] = Path(machine.env["XDG_STATE_HOME"]).glob("sessionlog/export/*.sqlite")
    with Revisions(str(state)), pytest.raises(NotExported, match="another export to the same place is running"):
        machine.export()


def test_the_same_logs_on_two_machines_count_once(tmp_path):
    """A restored backup under another user's home, with and without what is new on one of them."""
    first, second = make_machine(tmp_path, "a"), make_machine(tmp_path, "b")
    for machine in (first, second):
        add_log(machine)
        machine.export()
    assert usage_of(first.team, ("session",)) == first.usage(("session",))
    add_log(second, "t")
    second.export()
    assert usage_of(first.team, ("session",)) == second.usage(("session",))
    assert len({row[0] for row in rows_of(first.team, columns="machine_id")}) == 2
    assert len(set(rows_of(first.team, "sessions", "session, session_key"))) == 2


@pytest.mark.parametrize(
    "project", ['it\'s "x"\nand a line', "nul\0in", "/w/" + "long" * 200_000, "../../etc", "=cmd()"]
)
def test_hostile_names_are_only_names(machine, project):
    """In no path, and the same in the file as in the report."""
    add_log(machine, project=f"/w/{project}")
    machine.export()
    assert usage_of(machine.team) == machine.usage()
    paths = [str(path.relative_to(machine.team)) for path in Path(machine.team).rglob("*")]
    assert all(len(path) < 150 and path.isprintable() and ".." not in path for path in paths)


def test_odd_times_and_large_numbers_are_kept(machine):
    """A clock far off, no time at all, and the limits of 64 bits, of which sums have more."""
    most = 2**63 - 1
    rows = fill(machine, [
        session("far", record(time_ns=most, input=most, output=most, cost_nano=most)),
        session("before", record(time_ns=-most, input=most, output=most, cost_nano=most)),
        session("never", record(time_ns=None, latency_ms=float("inf"))),
    ])  # fmt: skip
    assert len(rows) == 3
    machine.export(prices=PRICES)
    with counted(machine.team) as connection:
        assert connection.execute("SELECT sum(input_tokens), sum(recorded_nano_usd) FROM requests").fetchall() == [
            (2 * most + 10, 2 * most)
        ]
        assert {row[1] for row in rows} == {
            time for (time,) in connection.execute("SELECT time_ns FROM requests").fetchall()
        }
    dates = {path.name for path in Path(machine.team).glob("usage/v=1/*")}
    assert dates == {"month=2262-04", "month=1677-09", "month=__HIVE_DEFAULT_PARTITION__"}
    assert machine.export(prices=PRICES).files == 0


def test_filters_choose_and_delete_nothing(machine):
    """What was exported before stays; the sums are those of the report with the same filters."""
    add_log(machine, "s", project="/w/api")
    add_log(machine, "t", project="/w/web", output=7)
    some = {"filters": {"project": ["/w/web"]}}
    done = machine.export(**some)
    assert (done.usage, done.sessions, done.tools) == (1, 1, 1)
    assert usage_of(machine.team) == machine.usage(**some)
    done = machine.export(since="2026-11-20")
    assert (done.usage, done.deleted) == (1, 0)
    assert machine.export(filters={"model": ["none"]}).deleted == 0
    assert usage_of(machine.team) == machine.usage()


def test_hidden_project_names_group_by_key(tmp_path):
    """With one key the same folder below two homes has one name; without it each machine has its own; none is in a file."""
    machines = [make_machine(tmp_path, name) for name in "ab"]
    for number, machine in enumerate(machines):
        add_log(machine, f"s{number}", project=f"{machine.home}/src/secret-project")
        machine.env["SESSIONLOG_REDACT_KEY"] = "of the team"
        machine.export(redact_projects=True)
    [(name,)] = set(rows_of(machines[0].team, columns="project"))
    assert name.startswith("project-")
    assert {*rows_of(machines[0].team, "tools", "project"), *rows_of(machines[0].team, "sessions", "project")} == {
        (name,)
    }
    for machine in machines:
        del machine.env["SESSIONLOG_REDACT_KEY"]
        machine.team = f"{tmp_path}/each"
        machine.export(redact_projects=True)
    assert len(set(rows_of(machines[0].team, columns="project"))) == 2
    text = "".join(
        map(repr, (rows_of(team, table) for team in (tmp_path / "each", tmp_path / "team") for table in TABLES))
    )
    assert "secret" not in text


def test_no_words_leave_the_machine(machine):
    """Prompts, answers and what tools returned are in no file."""
    add_log(machine)
    machine.export()
    assert "secret" not in "".join(repr(rows_of(machine.team, table)) for table in TABLES)


def test_a_dry_run_writes_nothing(machine):
    """It counts what would be written, also the second time."""
    add_log(machine)
    for _ in range(2):
        done = machine.export(dry_run=True)
        assert (done.usage, done.files, done.manifest) == (1, 3, "")
    assert not os.path.exists(machine.team)


def test_the_manifest_lists_the_files(machine):
    """With path, rows, size, digest and the version of the schema; each file has that, too."""
    add_log(machine)
    done = machine.export()
    document = json.loads(Path(machine.team, done.manifest).read_text())
    assert (document["schema"], document["machine_id"]) == ("sessionlog.export.manifest/1", done.machine_id)
    assert {(file["table"], file["rows"], file["schema"]) for file in document["files"]} == {(t, 1, 1) for t in TABLES}
    for file in document["files"]:
        path = Path(machine.team, file["path"])
        assert (path.stat().st_size, path.stat().st_mode & 0o777) == (file["bytes"], 0o600)
        with duckdb.connect() as connection:
            [(version,)] = connection.execute(
                f"SELECT value FROM parquet_kv_metadata('{path}') WHERE key = 'sessionlog_schema'"
            ).fetchall()
            found = connection.execute(
                f"DESCRIBE SELECT * FROM read_parquet('{path}', hive_partitioning = false)"
            ).fetchall()
        assert version == b"1"
        assert {name: kind for name, kind, *_ in found} == TABLES[file["table"]]


def test_the_page_s_sums_are_those_of_the_report(machine):
    """The second statement of the page, as it stands there."""
    add_log(machine, responses=3)
    machine.export()
    sums = PAGE.split("```sql\n")[2].split("```")[0]
    with counted(machine.team) as connection:
        [row] = connection.execute(sums).fetchall()
    [((provider, model), (requests, failed, tokens, output, read, written, _, known, estimate))] = machine.usage(
        ("provider", "model")
    ).items()
    assert row[:9] == (provider, model, requests, failed, tokens, output, read, written, known)
    assert round(row[9] * 1e9) == estimate


def test_the_page_names_every_column():
    """And no other one."""
    table = PAGE.split("## The columns")[1].split("## ")[0]
    named = {
        word
        for line in table.splitlines()
        if line.startswith("| `")
        for word in line.split("|")[1].replace("`", "").replace(",", "").split()
    }
    assert named == {name for columns in TABLES.values() for name in columns}


@pytest.mark.parametrize(
    "library",
    ["pyarrow", pytest.param("polars", marks=pytest.mark.slow), pytest.param("pyspark", marks=pytest.mark.slow)],
)
def test_other_libraries_read_the_same(machine, library):
    """Rows, nulls, lists, months and 64 bits."""
    pytest.importorskip(library)
    fill(
        machine,
        [session("s", record(key="k", superseded_by="native:t\nnative:u", cost_nano=2**62), record(time_ns=None))],
    )
    machine.export(prices=PRICES)
    script = Path(__file__).with_name("readers.py")
    ran = subprocess.run(
        [sys.executable, script, library, f"{machine.team}/usage"], capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout) == [
        ["native", 10, 2**62, ["native:t", "native:u"], "2026-11"], ["native", 10, None, None, None],
    ]  # fmt: skip


def test_many_rows_of_a_day_are_several_files(machine, monkeypatch):
    """So that memory does not grow with their number."""
    monkeypatch.setattr(parquet_run, "MOST_ROWS", 2)
    add_log(machine, responses=5)
    assert (machine.export().usage, len(list(Path(machine.team).glob("usage/v=1/*/*/*.parquet")))) == (5, 3)
    assert usage_of(machine.team) == machine.usage()


def test_urls_are_places_of_fsspec(machine):
    """Written once, and read again where nothing is known of them."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    add_log(machine)
    machine.team = "memory://user:secret@bucket/team"
    done = machine.export()
    assert (done.usage, done.destination) == (1, "memory://bucket/team")
    assert (machine.export().files, lost_state(machine).export().unchanged) == (0, 3)
    [path] = [path for path in memory.find("/") if "/usage/" in path]
    assert memory.cat_file(path)[:4] == b"PAR1"


def test_a_url_that_cannot_be_used_is_named(monkeypatch):
    """An unknown protocol, a package that is not there, and a store that refuses; no password is shown."""
    fsspec = pytest.importorskip("fsspec")
    with pytest.raises(NotExported, match="nosuch"):
        RemoteFolder("nosuch://x/y")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingExtra, match="export to s3://bucket/x needs: pip install s3fs"):
        RemoteFolder("s3://me:word@bucket/x")
    place = RemoteFolder("memory://me:word@there/x")
    monkeypatch.setattr(fsspec.filesystem("memory"), "ls", lambda *_, **__: 1 / 0)
    with pytest.raises(NotExported, match=r"^memory://there/x: division by zero$"):
        place.names("manifest")


def test_a_secret_key_with_a_slash_is_not_shown(monkeypatch):
    """Neither in the name of the place nor in the store's own error; the store gets the key as an option."""
    core = pytest.importorskip("fsspec.core")
    given = []

    def refuse(address, **options):
        given.append((address, options))
        raise OSError("the key AK:se/cret is refused")

    monkeypatch.setattr(core, "url_to_fs", refuse)
    with pytest.raises(NotExported) as caught:
        RemoteFolder("s3://AK:se/cret@bucket/x")
    assert str(caught.value) == "s3://bucket/x: the key … is refused"
    assert given == [("s3://bucket/x", {"key": "AK", "secret": "se/cret"})]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    """With the system's reason."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotExported, match="not a directory"):
        LocalFolder(str(tmp_path / "file")).write("usage/x", b"x")
    with pytest.raises(NotExported, match="no such file"):
        LocalFolder(str(tmp_path)).read("usage/x")


def test_wrong_calls_raise(machine, monkeypatch):
    """It is always the ledger's file that is exported; the extra is named where it is missing."""
    for options in ({"ledger": None}, {"live": True}):
        with pytest.raises(InvalidQuery, match="of the ledger's file"):
            machine.export(**options)
    Path(machine.ledger).write_text("no database, but a text that is long enough to be one" * 20)
    with pytest.raises(NotExported, match="ledger"):
        machine.export()
    monkeypatch.delitem(sys.modules, "sessionlog.export.parquet_files", raising=False)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sessionlog\[parquet\]'"):
        machine.export()


def test_the_block_of_the_page_exports(machine, monkeypatch, capsys):
    """As it stands there."""
    add_log(machine)
    for name, value in machine.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(machine.folder)
    [block] = [part.split("```")[0] for part in PAGE.split("```python\n")[1:]]
    exec(block, {})
    assert capsys.readouterr().out == "1 responses, 1 tool calls, 1 sessions in 3 files\n"
