"""Reports over what machines have exported: one machine's equal its ledger's, several machines' count everything once."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")

from sessionlog.analytics.blocks import list_blocks  # noqa: E402 - after the skip
from sessionlog.analytics.models import list_models  # noqa: E402 - as above
from sessionlog.analytics.sessions import list_sessions  # noqa: E402 - as above
from sessionlog.analytics.tools import aggregate_tools  # noqa: E402 - as above
from sessionlog.analytics.usage import aggregate_usage  # noqa: E402 - as above
from tests.export.machines import Machine  # noqa: E402 - as above
from tests.sources.homes import all_cases, build_home  # noqa: E402 - as above

NOW = datetime(2026, 11, 23, 12, 7, 31, tzinfo=UTC)
QUESTIONS = (
    (aggregate_usage, {}),
    (aggregate_usage, {"by": ("source", "project", "branch", "agent", "status", "harness", "version", "machine")}),
    (aggregate_usage, {"by": ("hour", "response_model"), "tz": "Asia/Kathmandu"}),
    (aggregate_usage, {"by": ("session",), "window": "2026-01-01T00:03:11Z..2026-11-20T10:00:02.5Z"}),
    (aggregate_usage, {"window": "2mo", "filters": {"model": ["*claude*", "*g*"]}}),
    (list_models, {"sort": "-cost_usd"}),
    (list_sessions, {"window": "2024-01-01T00:00:01Z.."}),
    (aggregate_tools, {"by": ("server", "tool", "agent", "project", "day", "status", "machine")}),
    (aggregate_tools, {"filters": {"tool": ["b*"]}, "window": "2025-10-01.."}),
    (list_blocks, {"filters": {"source": ["*"]}}),
)
QUICK = ("claude-code/every-kind-of-copy", "codex/models")
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
