"""The generated homes of coding agents: the same seed gives the same bytes, and their truth adds up."""

import hashlib
import json
import re
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from benchmarks.agent_homes import COLUMNS, generate
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.usage import aggregate_usage, fold_usage
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.analytics.zones import resolve_zone
from sessionlog.ledger.ask import Where, ask
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.registry import load_source
from sessionlog.testing import check_source

SOURCES = ("claude-code", "codex")


def written(folder):
    """Relative path → age and hash of every file under a folder."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """Both homes, 3 MB each, and their truth."""
    out = tmp_path_factory.mktemp("homes") / "one"
    return out, generate(out, claude_megabytes=3, codex_megabytes=3)


def test_the_same_seed_gives_the_same_bytes(homes, tmp_path):
    """Two homes of one seed are equal, file by file, and so are their truths."""
    out, truth = homes
    assert generate(tmp_path / "two", claude_megabytes=3, codex_megabytes=3) == truth
    assert written(tmp_path / "two") == written(out)


def test_another_seed_gives_another_home(homes, tmp_path):
    """The seed decides what is written."""
    out, truth = homes
    assert generate(tmp_path / "two", claude_megabytes=0.2, codex_megabytes=0.2, seed=7)["seed"] != truth["seed"]
    assert not written(tmp_path / "two").keys() & written(out).keys()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("group", ["by_model", "by_day", "by_day_model", "by_session"])
def test_every_grouping_adds_up_to_the_totals(homes, source, group):
    """Sums over models, days and sessions are the totals."""
    truth = homes[1]["sources"][source]
    sums = Counter()
    for row in truth[group].values():
        sums.update(row)
    assert {name: sums[name] for name in COLUMNS} == truth["totals"]
    assert truth["totals"]["requests"] > 100


@pytest.mark.parametrize("source", SOURCES)
def test_the_truth_is_about_what_is_on_disk(homes, source):
    """Files, rows and bytes of the truth are those of the folder; all rows but torn last ones are JSON objects."""
    out, document = homes
    truth = document["sources"][source]
    folder = out / source.partition("-")[0]
    logs = list(folder.rglob("*.jsonl"))
    rows = [line for path in logs for line in path.read_bytes().split(b"\n") if line]
    whole = [line for line in rows if line.endswith(b"}")]
    assert len(logs) == truth["files"]
    assert len(rows) == truth["rows"]
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) == truth["stored_bytes"]
    assert all(isinstance(json.loads(line), dict) for line in whole)
    assert len(rows) - len(whole) == truth["kinds"].get("torn last rows", 0)


def test_the_truth_lies_beside_the_homes(homes):
    """What generate returns is what stands in NAME.truth.json."""
    out, truth = homes
    assert json.loads(out.with_name(f"{out.name}.truth.json").read_text()) == truth


COUNTED = ("requests", "failed_requests", *(name for name in COLUMNS if name.endswith("_tokens") and "1h" not in name))


def counted(homes, source, by):
    """Group → what a report says of a home."""
    out = homes[0]
    env = {"HOME": str(out), "CLAUDE_CONFIG_DIR": str(out / "claude"), "CODEX_HOME": str(out / "codex")}
    report = aggregate_usage(None, env=env, by=(by,), filters={"source": [source]})
    return {row.keys[by]: Counter({name: getattr(row, name) for name in COUNTED}) for row in report.rows}


def expected(homes, source, group):
    """Group → the truth; a sub-agent's thread belongs to its parent's session, wherever that was itself made by one."""
    truth = homes[1]["sources"][source]
    parents = truth.get("parents") or {}
    rows = {}
    for name, row in truth[group].items():
        while name in parents:
            name = parents[name]
        rows.setdefault(name, Counter()).update({column: row[column] for column in COUNTED})
    return {name: row for name, row in rows.items() if any(row.values())}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("by", "group"), [("day", "by_day"), ("session", "by_session")])
def test_our_reports_equal_the_truth(homes, source, by, group):
    """Every token on its day and in its session, whatever was copied, repeated, replayed or torn."""
    assert counted(homes, source, by) == expected(homes, source, group)


@pytest.mark.parametrize("source", SOURCES)
def test_our_models_equal_the_truth(homes, source):
    """The same by model; what failed has no model of its own in the truth."""

    def by_tokens(rows):
        return {
            model: {name: row[name] for name in COUNTED if name.endswith("_tokens")}
            for model, row in rows.items()
            if row["output_tokens"]
        }

    assert by_tokens(counted(homes, source, "model")) == by_tokens(expected(homes, source, "by_model"))


# --- logs that are read on


@pytest.fixture(scope="module")
def small_homes(tmp_path_factory):
    """Both homes, half a MB each."""
    out = tmp_path_factory.mktemp("small") / "home"
    generate(out, claude_megabytes=0.5, codex_megabytes=0.5)
    return out


@pytest.mark.parametrize("source", SOURCES)
def test_scans_that_go_on_tell_the_same(small_homes, source):
    """Wherever a log is cut, once or many times: the same records, of the same active time."""
    assert check_source(load_source(source), small_homes / source.partition("-")[0], cuts=6, damages=0) > 4


def grow(folder, logs, share):
    """Write the beginning of each log, up to the end of a line; return the last times that were written."""
    times = []
    for name, content in logs.items():
        end = content.find(b"\n", int(len(content) * share)) + 1 or len(content)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(content[file.tell() : end])
        times += re.findall(rb'"timestamp":"([^"]+)"', content[:end])[-1:]
    return [time.decode() for time in times]


def test_a_ledger_that_grew_with_its_logs_tells_the_same_durations(small_homes, tmp_path):
    """In windows that end where a log was cut, too: it was active for as long as one that is read whole."""
    logs = {path.relative_to(small_homes): path.read_bytes() for path in small_homes.rglob("*.jsonl")}
    env = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"), "CODEX_HOME": str(tmp_path / "codex")}
    ledger, prices, times = tmp_path / "ledger.sqlite", PriceBook.load(), set()
    for part in range(9):
        times.update(grow(tmp_path, logs, part / 8))
        ask(Where(ledger=ledger, env=env, prices=prices), fold_windows)
    found, whole = (
        ask(where, partial(fold_windows, times=times))
        for where in (Where(ledger=ledger, env=env, prices=prices), Where(env=env, prices=prices))
    )
    assert found == whole
    assert len({window["totals"]["duration_ms"] for window in found}) > 20


def fold_windows(book, times=()):
    """Reports of all that was before each of these times."""
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    windows = [parse_usage_window(f"..{time}", now=now) for time in sorted(times)]
    zone, now_ns = resolve_zone("UTC"), int(now.timestamp()) * 10**9
    selections = [Selection(window=one, by=("session",), filters={}, zone=zone, now_ns=now_ns) for one in windows]
    return [
        {name: report[name] for name in ("rows", "totals")}
        for report in (fold_usage(book, selection).to_dict() for selection in selections)
    ]
