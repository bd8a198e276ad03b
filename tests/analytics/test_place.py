"""Reports over what machines have exported: one machine's equal its ledger's, several machines' count everything once."""

import json
import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

duckdb = pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")

from sessionlog.analytics.audit import audit_session  # noqa: E402 - as above
from sessionlog.analytics.blocks import list_blocks  # noqa: E402 - after the skip
from sessionlog.analytics.models import list_models  # noqa: E402 - as above
from sessionlog.analytics.routing import scan_routing_quality  # noqa: E402 - as above
from sessionlog.analytics.sessions import list_sessions  # noqa: E402 - as above
from sessionlog.analytics.tools import aggregate_tools  # noqa: E402 - as above
from sessionlog.analytics.usage import aggregate_usage  # noqa: E402 - as above
from sessionlog.errors import InvalidQuery, MissingExtra  # noqa: E402 - as above
from sessionlog.export import parquet  # noqa: E402 - as above
from sessionlog.pricing.seed_table import PricingTable  # noqa: E402 - as above
from tests.export.machines import SUMS, Machine, nano, rows_of  # noqa: E402 - as above
from tests.export.test_parquet import add_log, fill, make_machine  # noqa: E402 - as above
from tests.ledger.entries import NOON, PRICES, record, session  # noqa: E402 - as above
from tests.ledger.test_copies import LOGS  # noqa: E402 - as above
from tests.profiles import examples  # noqa: E402 - as above
from tests.sources.homes import all_cases, build_home  # noqa: E402 - as above

NOW = datetime(2026, 11, 23, 12, 7, 31, tzinfo=UTC)
QUESTIONS = (
    (aggregate_usage, {}),
    (aggregate_usage, {"by": ("source", "project", "branch", "agent", "status", "harness", "version", "machine")}),
    (aggregate_usage, {"by": ("skill", "plugin", "mcp")}),
    (aggregate_usage, {"by": ("tier", "region", "kind")}),
    (aggregate_usage, {"by": ("hour", "mcp"), "window": "2025-10-01T00:03:11Z.."}),
    (aggregate_usage, {"by": ("hour", "response_model"), "tz": "Asia/Kathmandu"}),
    (aggregate_usage, {"by": ("session",), "window": "2026-01-01T00:03:11Z..2026-11-20T10:00:02.5Z"}),
    (aggregate_usage, {"window": "2mo", "filters": {"model": ["*claude*", "*g*"]}}),
    (list_models, {"sort": "-cost_usd"}),
    (list_sessions, {"window": "2024-01-01T00:00:01Z.."}),
    (aggregate_tools, {"by": ("server", "tool", "agent", "project", "day", "status", "machine")}),
    (aggregate_tools, {"filters": {"tool": ["b*"]}, "window": "2025-10-01.."}),
    (list_blocks, {"filters": {"source": ["*"]}}),
)
QUICK = ("claude-code/every-kind-of-copy",)
UNKNOWN = ("path", "prompt", "error", "route", "archived")
"""What is not exported of a session."""


def documents(paths=None, **options):
    """The JSON documents of all questions, without what is not exported."""
    found = []
    for function, more in QUESTIONS:
        document = function(paths, now=NOW, jobs=1, **options, **more).to_dict()
        for name in ("problems", "archived_sessions", "rate_limits", "limits"):
            document.pop(name, None)
        document["rows"] = [row for row in document["rows"] if row.get("counted", True)]  # others are not exported
        for row in document["rows"]:
            for name in UNKNOWN:
                row.pop(name, None)
        found.append(document)
    return found


def equal(machine):
    """Assert that a machine's reports over its own export are those of its ledger."""
    done = machine.export()
    if not done.files:
        return
    for mine, exported in zip(
        documents(ledger=machine.ledger, env=machine.env), documents(machine.team, env=machine.env), strict=True
    ):
        named = {row["machine"] for row in mine["rows"] if "machine" in row}
        for row in exported["rows"]:
            if "machine" in row:
                [row["machine"]] = named
        assert exported == mine


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in QUICK else pytest.mark.slow) for case in all_cases()]
)
def test_one_machine_s_reports_are_those_of_its_ledger(tmp_path, case):
    """Every report, with groups, filters and windows that cut quarter hours."""
    equal(Machine(tmp_path, build_home(case, tmp_path / "case"), tmp_path / "team"))


@pytest.mark.slow
@pytest.mark.skipif("SESSIONLOG_REAL" not in os.environ, reason="$SESSIONLOG_REAL names no homes of real clients")
def test_logs_of_real_clients_count_the_same(tmp_path):
    """The same for every home."""
    for home in sorted(path for path in Path(os.environ["SESSIONLOG_REAL"]).iterdir() if path.is_dir()):
        machine = Machine(tmp_path / home.name, home, tmp_path / home.name / "team")
        machine.folder.mkdir()
        equal(machine)


def sums(report):
    """Tokens, requests and nano-dollars of a report's rows, by provider and model."""
    return {
        (*row.keys.values(),): (*(getattr(row, name) for name in SUMS), nano(row.known_cost_usd), nano(row.estimated_cost_usd))
        for row in report.rows
        if any(getattr(row, name) for name in SUMS)
    }  # fmt: skip


@examples(6)
@given(LOGS, st.data())
def test_logs_that_are_split_over_machines_count_as_in_one_ledger(tmp_path_factory, entries, data):
    """Each log on one machine or on several, some exported before others are there."""
    folder = tmp_path_factory.mktemp("split")
    logs = {}
    for name, path, fields in entries:
        logs.setdefault(path, []).append(session(name, record(**fields), path=f"{path}.jsonl"))
    places = {path: data.draw(st.sets(st.sampled_from("abc"), min_size=1), label=str(path)) for path in logs}
    whole = make_machine(folder, "whole")
    fill(whole, [one for some in logs.values() for one in some])
    for name in sorted(set().union(*places.values())):
        machine = make_machine(folder, name)
        for path, some in logs.items():
            if name in places[path]:
                fill(machine, some)
                machine.export(prices=PRICES)
    mine = aggregate_usage(ledger=whole.ledger, env=whole.env, prices=PRICES, jobs=1)
    assert sums(aggregate_usage(whole.team)) == sums(mine)


MAIN_LOGS = st.tuples(st.just(False), st.sampled_from([None, "success", "error"]), st.sampled_from([None, 1, 5]))
LOGS_OF_AGENTS = st.just((True, None, None))


@examples(6)
@given(st.lists(MAIN_LOGS | LOGS_OF_AGENTS, min_size=1, max_size=4), st.data())
def test_logs_of_one_session_that_are_split_over_machines_end_it_as_in_one_ledger(tmp_path_factory, logs, data):
    """Its latest main log has the end, its earliest the project; logs of sub-agents, which may be the last, have times."""
    folder = tmp_path_factory.mktemp("session")
    starts, ends = (data.draw(st.permutations(range(len(logs)))) for _ in range(2))
    scans = [
        session("s", record(key=f"r{number}"), path=f"{number}.jsonl", part=part, status=status, turns=turns,
            start_ns=NOON + starts[number], last_ns=NOON + 9 + ends[number], project=f"/p{number}")
        for number, (part, status, turns) in enumerate(logs)
    ]  # fmt: skip
    whole = make_machine(folder, "whole")
    fill(whole, scans)
    machines = [data.draw(st.sets(st.sampled_from("abc"), min_size=1)) for _ in scans]
    for name in sorted(set().union(*machines)):
        machine = make_machine(folder, name)
        fill(machine, [scan for scan, some in zip(scans, machines, strict=True) if name in some])
        machine.export(prices=PRICES)
    [mine] = list_sessions(ledger=whole.ledger, env=whole.env, prices=PRICES, jobs=1, now=NOW).to_dict()["rows"]
    [found] = list_sessions(whole.team, now=NOW).to_dict()["rows"]
    assert {name: found[name] for name in found if name not in UNKNOWN} == {
        name: mine[name] for name in mine if name not in UNKNOWN
    }


def test_a_sub_agent_s_log_on_another_machine_does_not_end_its_session(tmp_path):
    """Codex's sub-agents have logs of their own, which another machine may have without their parent's."""
    desk, laptop = make_machine(tmp_path, "desk"), make_machine(tmp_path, "laptop")
    fill(desk, [session("s", record(key="a"), turns=1)])
    fill(laptop, [session("s", record(key="b"), path="agent.jsonl", part=True, status=None, last_ns=NOON + 5)])
    for machine in (desk, laptop):
        machine.export(prices=PRICES)
    totals = aggregate_usage(desk.team, now=NOW).totals
    assert (totals.requests, totals.success_sessions, totals.unfinished_sessions) == (2, 1, 0)


def test_sessions_exported_without_a_later_column_still_count(machine, tmp_path):
    """Columns are added within a version; beside a machine that exports them all, and alone."""
    path = next(Path(machine.team).glob("sessions/**/*.parquet"))
    older = f"SELECT * EXCLUDE (part, main_start_ns, main_last_ns) FROM '{path}'"
    duckdb.execute(f"COPY ({older}) TO '{path}' (FORMAT parquet, KV_METADATA {{sessionlog_schema: '1'}})")
    resize(path)
    assert problems_of(machine) == ([], 1)
    other = make_machine(tmp_path, "b")
    add_log(other, "t")
    other.export()
    assert problems_of(machine) == ([], 2)
    assert aggregate_usage(machine.team).totals.success_sessions == 2


def test_responses_exported_without_later_columns_still_count(tmp_path):
    """Beside a machine that exports them; rows that have nothing of them are not written again for them."""
    machine = make_machine(tmp_path, "a")
    fill(machine, [session("s", record(key="r"))])
    machine.export(prices=PRICES)
    assert rows_of(machine.team, columns="state") == [(-6006296059800221836,)]  # as before there were these columns
    path = next(Path(machine.team).glob("usage/**/*.parquet"))
    older = f"SELECT * EXCLUDE (skill, plugin, mcp, region, kind, searches, extra_nano_usd) FROM '{path}'"
    duckdb.execute(f"COPY ({older}) TO '{path}' (FORMAT parquet, KV_METADATA {{sessionlog_schema: '1'}})")
    resize(path)
    assert problems_of(machine) == ([], 1)
    other = make_machine(tmp_path, "b")
    searched = record(key="p", plugin="office", cost_nano=20, searches=3, extra_nano=7, region="us", kind="advisor")
    fill(other, [session("t", record(key="q", skill="pdf", mcp="files"), searched)])
    other.export(prices=PRICES)
    report = aggregate_usage(machine.team, by=["skill", "plugin", "mcp"], now=NOW)
    assert {tuple(row.keys.values()): row.requests for row in report.rows} == {
        ("-", "-", "-"): 1, ("pdf", "-", "files"): 1, ("-", "office", "-"): 1,
    }  # fmt: skip
    report = aggregate_usage(machine.team, by=["region", "kind"], now=NOW)
    assert {tuple(row.keys.values()): (row.requests, row.searches, row.extra_nano) for row in report.rows} == {
        ("-", "-"): (2, 0, None), ("us", "advisor"): (1, 3, 7),
    }  # fmt: skip


@pytest.fixture
def machine(tmp_path):
    """A machine that has exported a session."""
    machine = make_machine(tmp_path, "a")
    add_log(machine)
    machine.export()
    return machine


def test_machines_are_rows_and_share_what_both_have(machine, tmp_path):
    """A restored backup adds only what is new on it."""
    other = make_machine(tmp_path, "b")
    add_log(other)
    add_log(other, "t", output=7)
    other.export()
    report = aggregate_usage(machine.team, by=["machine"])
    assert sorted(row.requests for row in report.rows) == [1, 1] or [row.requests for row in report.rows] == [2]
    assert (report.totals.requests, report.totals.sessions, report.totals.output_tokens) == (2, 2, 27)
    assert report.notes == ()


def manifest_of(machine):
    """The path of a machine's newest manifest, and its document."""
    path = max(Path(machine.team).glob("manifest/v=1/*/*.json"))
    return path, json.loads(path.read_text())


def problems_of(machine):
    """Kinds and sentences of the problems of a place, and its requests."""
    report = aggregate_usage(machine.team)
    assert report.problem_count == len(report.problems)
    return [(one.kind, one.detail) for one in report.problems], report.totals.requests


def test_a_native_log_on_two_machines_counts_once(machine, tmp_path):
    """Its calls too, whose keys have the log's path in a ledger; homes differ."""
    other = make_machine(tmp_path, "another")
    add_log(other, "s")
    other.export()
    assert aggregate_usage(machine.team).totals.requests == 1
    assert aggregate_tools(machine.team).totals.calls == 1


@pytest.mark.parametrize(("laptop", "requests"), [("y", 2), ("zx", 2)])
def test_logs_of_superseding_sessions_that_are_not_there_count_once(tmp_path, laptop, requests):
    """Each of them on every machine, whatever number its ledger gives it."""
    for name, logs in (("desk", "x"), ("laptop", laptop)):
        machine = make_machine(tmp_path, name)
        fill(machine, [session(log, record(superseded_by="" if log == "z" else f"codex:{log}")) for log in logs])
        machine.export(prices=PRICES)
    assert aggregate_usage(machine.team, now=NOW).totals.requests == requests


def damage(path):
    """Overwrite the middle of a file."""
    data = bytearray(path.read_bytes())
    data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
    path.write_bytes(data)


def foreign(path):
    """Replace a file by one of another program."""
    path.unlink()
    duckdb.execute(f"COPY (SELECT 1 AS machine_id) TO '{path}' (FORMAT parquet)")
    resize(path)


def newer(path):
    """Replace a file by one of a newer schema."""
    path.unlink()
    duckdb.execute(f"COPY (SELECT 1 AS x) TO '{path}' (FORMAT parquet, KV_METADATA {{sessionlog_schema: '2'}})")
    resize(path)


def odd(path):
    """Replace a file by one that claims to be ours and has other columns."""
    path.unlink()
    duckdb.execute(f"COPY (SELECT 1 AS record) TO '{path}' (FORMAT parquet, KV_METADATA {{sessionlog_schema: '1'}})")
    resize(path)


def resize(path):
    """Write a file's size into the manifests."""
    team = next(parent for parent in path.parents if (parent / "manifest").is_dir())
    for manifest in team.glob("manifest/v=1/*/*.json"):
        document = json.loads(manifest.read_text())
        for file in document["files"]:
            if file["path"].endswith(path.name):
                file["bytes"] = path.stat().st_size
        manifest.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-40]), "unreadable", "were exported: copy it again"),
        (Path.unlink, "unreadable", "it is missing; a manifest lists it"),
        (damage, "unreadable", "it is damaged"),
        (foreign, "unknown_format", "sessionlog has not written it"),
        (newer, "unknown_version", "version 2 of the schema"),
        (odd, "unknown_format", "its column machine_id is not as exported"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_problem(machine, tmp_path, change, kind, words):
    """By its name; what other files have counts."""
    other = make_machine(tmp_path, "b")
    add_log(other, "t")
    other.export()
    path = min(Path(machine.team).glob("usage/**/*.parquet"))
    change(path)
    [(found, detail)], requests = problems_of(machine)
    assert (found, words in detail, requests) == (kind, True, 1)
    assert str(aggregate_usage(machine.team).problems[0].path) == str(path)


def test_a_session_whose_own_row_is_lost_still_counts(machine):
    """Its start and end are those of its responses."""
    next(Path(machine.team).glob("sessions/**/*.parquet")).unlink()
    [listed] = list_sessions(machine.team).rows
    assert (listed.session, listed.requests, listed.status) == ("s", 1, "unfinished")


def test_manifests_that_cannot_be_used_are_problems(machine):
    """Half a manifest, one of a newer version, and one that names files outside the place, or another machine's."""
    path, document = manifest_of(machine)
    newest = path.with_name("00000009-2026-11-20T10-00-00Z-0.json")
    newest.write_text(path.read_text()[:99])
    folder = path.parents[1].with_name("v=2") / "machine=x"
    folder.mkdir(parents=True)
    (folder / "00000001.json").write_text("{}")
    found, requests = problems_of(machine)
    assert sorted(kind for kind, _ in found) == ["unknown_version", "unreadable"]
    shutil.rmtree(folder.parent)
    newest.write_text(json.dumps(document | {"schema": "sessionlog.export.manifest/2"}))
    assert problems_of(machine)[0] == [("unknown_version", "it is of a newer sessionlog: update this one to read it")]
    other = document["files"][0]["path"].replace(document["machine_id"], "another")
    for name in ("../../secret.parquet", "/etc/passwd", "usage/v=1/../x.parquet", "usage/v=1/*.parquet", other, 7):
        newest.write_text(json.dumps(document | {"files": [{**document["files"][0], "path": name}]}))
        [(kind, detail)], requests = problems_of(machine)
        words = "the manifest is damaged" if name == 7 else "no file of a place by its machine"
        assert (kind, words in detail, requests) == ("unreadable", True, 1)


def test_two_machines_with_one_id_are_noted(machine, tmp_path):
    """As of a copied ledger; what they have in common counts once, and so does what they differ in."""
    path, document = manifest_of(machine)
    for number, name in enumerate(("desk", "laptop")):
        path.with_name(f"00000009-2026-11-20T10-00-0{number}Z-0.json").write_text(
            json.dumps(document | {"machine_name": name})
        )
    report = aggregate_usage(machine.team)
    assert report.totals.requests == 1
    [note] = report.notes
    assert note.startswith(f"desk and laptop export with one id, {document['machine_id']}, as a copied ledger does")


def test_a_clock_that_is_wrong_is_noted(machine):
    """An export of the future."""
    path, document = manifest_of(machine)
    path.write_text(json.dumps(document | {"written": "2026-11-25T10:00:00Z", "machine_name": "desk"}))
    report = aggregate_usage(machine.team, now=datetime(2026, 11, 24, 10, tzinfo=UTC))
    assert report.notes == (
        "desk: exported at 2026-11-25T10:00:00Z, which is in the future: a clock is wrong, here or there",
    )
    assert report.totals.requests == 1


def test_a_clock_that_is_set_back_a_day_loses_nothing(machine, monkeypatch):
    """The newest manifest is that with the highest number, whatever its time; nothing is removed for it."""

    class Behind(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(days=1)

    monkeypatch.setattr(parquet, "datetime", Behind)
    for number in (2, 3):
        add_log(machine, f"s{number}")
        machine.export()
        report = aggregate_usage(machine.team)
        assert (report.totals.requests, report.notes, report.problem_count) == (number, (), 0)
    assert len(list(Path(machine.team).glob("manifest/v=1/*/*.json"))) == 3
    document = manifest_of(machine)[1]
    yesterday = datetime.now(UTC) - timedelta(hours=23)
    assert (document["number"], document["written"] < f"{yesterday:%Y-%m-%dT%H:%M:%SZ}") == (3, True)


def test_what_a_place_cannot_answer_is_one_sentence(machine, tmp_path, monkeypatch):
    """Routes, metadata, prices, audits, a place beside logs, and without DuckDB."""
    for options, words in (
        ({"by": ["route"]}, "has no route"),
        ({"by": ["meta.team"]}, "has no meta.team"),
        ({"prices": PricingTable({})}, "leave out --prices"),
        ({"paths": [machine.team, str(tmp_path)]}, "give only one kind of PATH"),
    ):
        with pytest.raises(InvalidQuery, match=words):
            aggregate_usage(**{"paths": machine.team} | options)
    with pytest.raises(InvalidQuery, match="an audit compares logs"):
        audit_session("s", machine.team)
    with pytest.raises(InvalidQuery, match="has no routing decisions"):
        scan_routing_quality(machine.team)
    monkeypatch.delitem(sys.modules, "sessionlog.engine.place_book", raising=False)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sessionlog\[parquet\]'"):
        aggregate_usage(machine.team)


def test_a_url_is_a_place_too(machine):
    """Read through fsspec; no password is shown."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.put(machine.team, "/user:secret@places/team", recursive=True)
    url = "memory://user:secret@places/team"
    assert aggregate_usage(url).totals.requests == 1
    [path] = [path for path in memory.find("/user:secret@places/team") if "/usage/" in path]
    memory.rm(path)
    [problem] = aggregate_usage(url).problems
    assert problem.path == f"memory://places/team/{path.partition('/team/')[2]}"
    memory.rm("/user:secret@places", recursive=True)


def test_an_empty_place_and_one_with_an_odd_name(machine, tmp_path):
    """No files, no rows; and characters of patterns in the folder's name."""
    (tmp_path / "empty" / "manifest" / "v=1").mkdir(parents=True)
    assert aggregate_usage(tmp_path / "empty").is_empty
    os.rename(machine.team, tmp_path / "te'am [1]*?")
    assert aggregate_usage(tmp_path / "te'am [1]*?").totals.requests == 1
