"""`sessionlog routing-quality`: data to stdout, notes to stderr, and the exit codes of the house."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sessionlog.cli.app import build_app

DATA = Path(__file__).parents[2] / "testdata" / "routing"
BASIC, LESSONS = str(DATA / "basic"), str(DATA / "lessons")


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run the command with an empty configuration and `testdata/routing/basic` as the own logs."""
    monkeypatch.setenv("SESSIONLOG_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("SESSIONLOG_DIR", BASIC)
    monkeypatch.setenv("SESSIONLOG_TZ", "UTC")
    app = build_app(("routing-quality", "usage"))
    return lambda *args: CliRunner().invoke(app, ["routing-quality", "--now", "2026-11-21T12:00:00Z", *args])


def test_the_view_is_the_default(run):
    """Without arguments the own logs are judged, of all time."""
    result = run("--width", "80")
    assert result.exit_code == 0
    assert result.stdout.startswith("Routing quality · all time · 6 sessions\n")
    assert result.stderr == ""


def test_json_is_one_document(run):
    """Schema, window and figures, and nothing else on stdout."""
    result = run(BASIC, "--json", "--since", "2d")
    assert result.exit_code == 0
    value = json.loads(result.stdout)
    assert value["schema"] == "sessionlog.routing/1"
    assert (value["total_requests"], value["window"]["end"][:19]) == (5, "2026-11-21T12:00:00")


def test_until_ends_the_window(run):
    """A date as the end is inside."""
    assert json.loads(run("--json", "--until", "2026-10-20").stdout)["total_requests"] == 1


def test_csv_has_the_rows_of_the_axis(run):
    """The breakdown narrowed to one axis."""
    result = run(BASIC, LESSONS, "--csv", "--axis", "provider")
    assert result.exit_code == 0
    assert {row["axis"] for row in csv.DictReader(io.StringIO(result.stdout))} == {"provider"}


def test_damage_is_noted_beside_the_data(run):
    """One line on stderr names the first damaged place; the JSON stays whole."""
    result = run(LESSONS, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["undecodable_overrides"] == 1
    assert result.stderr.count("\n") == 1
    assert "unreadable-override.jsonl" in result.stderr


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--axis", "region"], "harness, provider, model"),
        (["--since", "lately"], "lately"),
        (["--json", "--csv"], "only one"),
        (["--tz", "Mars/Olympus", "--since", "today"], "Mars/Olympus"),
        (["--now", "noon"], "noon"),
    ],
)
def test_wrong_usage_exits_2(run, args, word):
    """The message names what was wrong and what there is."""
    result = run(*args)
    assert result.exit_code == 2
    assert word in result.stderr
    assert result.stdout == ""


def test_a_missing_path_exits_3(run):
    """A path that was named must be there."""
    result = run(BASIC, "no-such-folder")
    assert result.exit_code == 3
    assert "no-such-folder" in result.stderr


def test_the_sources_of_other_agents_are_not_loaded(monkeypatch):
    """In a fresh interpreter: only our own logs have routing decisions."""
    monkeypatch.setenv("SESSIONLOG_DIR", BASIC)
    code = "import sys; from sessionlog.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", code, "routing-quality", "--json"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stderr.split()
    assert {"msgspec", "sessionlog.sources.registry", "sessionlog.ledger.sync", "rich"}.isdisjoint(loaded)
