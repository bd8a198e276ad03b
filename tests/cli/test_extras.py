"""Extras: imported only by what asks for them, and one sentence that names them where they are missing."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.export.conftest import USAGE, event

EXTRAS = ("duckdb", "fsspec", "s3fs", "pyspark", "textual", "mcp", "opentelemetry", "jsonschema", "splintr")
WATCH = """
import os
from importlib.machinery import PathFinder
found, missing = PathFinder.find_spec, os.environ["MISSING"].split(",")

def find_spec(cls, name, path=None, target=None):
    if name in missing:
        with open(os.environ["ASKED"], "a") as asked:
            print(name, file=asked)
        return None
    return found(name, path, target)

PathFinder.find_spec = classmethod(find_spec)
"""
"""Makes packages that are installed absent, and notes who asks for them."""


@pytest.fixture
def run(tmp_path):
    """Run a command without some packages; returns its exit code, its errors and which of these it asked for."""
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    logs = tmp_path / "logs"
    logs.mkdir()
    start = event(0, 0, "session.start", v=1, provider="anthropic", model="claude-opus-4-5", work_dir="/w/api")
    answer = event(1, 1, "llm.response", model="claude-opus-4-5", usage=USAGE, content="words")
    (logs / "s.jsonl").write_text(start + answer)
    place = tmp_path / "place" / "manifest" / "v=1" / "machine=x"
    place.mkdir(parents=True)
    (place / "00000001-2026-11-20T10-00-00Z-0.json").write_text(json.dumps({
        "schema": "sessionlog.export.manifest/1", "number": 1, "machine_id": "x", "written": "2026-11-20T10:00:00Z",
        "files": [],
    }))  # fmt: skip

    def run(words, missing=EXTRAS):
        asked = tmp_path / "asked"
        asked.write_text("")
        path = os.pathsep.join([str(tmp_path / "watch"), *filter(None, [os.environ.get("PYTHONPATH")])])
        env = {
            "PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "SESSIONLOG_DIR": str(logs), "PYTHONPATH": path,
            "MISSING": ",".join(missing), "ASKED": str(asked), "TERM": "dumb",
        }  # fmt: skip
        command = [sys.executable, "-m", "sessionlog", *words.format(tmp=tmp_path).split(" ")]
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr, set(asked.read_text().split())

    return run


@pytest.mark.parametrize(
    "words",
    [
        "usage --json", "usage --by day", "sessions", "tools", "blocks", "models", "status", "budget", "ledger", "sources",
        "check", "replay s", "find words", "sql SELECT(1)", "scrub", "context s", "advise", "yield", "usage --help",
        "report --html {tmp}/x.html", "usage {tmp}/logs", "--version",
    ],
)  # fmt: skip
def test_commands_do_without_extras(run, words):
    """And do not even ask whether they are there."""
    code, errors, asked = run(words)
    assert (code in (0, 1), asked) == (True, set()), errors


@pytest.mark.parametrize(
    ("words", "missing", "needed"),
    [
        ("export {tmp}/team --parquet", ("duckdb",), "pip install 'sessionlog[parquet]'"),
        ("export {tmp}/team --parquet --events", ("duckdb",), "pip install 'sessionlog[parquet]'"),
        ("export s3://bucket/x --parquet", ("fsspec",), "pip install 'sessionlog[remote]' s3fs"),
        ("export s3://bucket/x --parquet", ("s3fs",), "pip install s3fs"),
        ("export --otlp http://127.0.0.1:9", ("opentelemetry",), "pip install 'sessionlog[otel]'"),
        ("usage {tmp}/place", ("duckdb",), "pip install 'sessionlog[parquet]'"),
        ("sessions {tmp}/place", ("duckdb",), "pip install 'sessionlog[parquet]'"),
        ("usage s3://bucket/x", ("fsspec",), "pip install 'sessionlog[remote]' s3fs"),
        ("usage s3://bucket/x", ("s3fs",), "pip install s3fs"),
        ("check gs://bucket/x", ("fsspec",), "pip install 'sessionlog[remote]' gcsfs"),
        ("replay az://bucket/x", ("adlfs",), "pip install adlfs"),
        ("context ssh://host/x", ("paramiko",), "pip install paramiko"),
        ("scrub s3://bucket/x", ("fsspec",), "pip install 'sessionlog[remote]' s3fs"),
        ("sql --events SELECT(1)", ("duckdb",), "pip install 'sessionlog[parquet]'"),
        ("usage --engine spark", ("pyspark",), "pip install 'sessionlog[spark]'"),
        ("ui", ("textual",), "pip install 'sessionlog[tui]'"),
        ("mcp", ("mcp",), "pip install 'sessionlog[mcp]'"),
    ],
)  # fmt: skip
def test_a_missing_extra_is_one_sentence(run, words, missing, needed):
    """Which says what to install."""
    if "s3fs" in missing:
        pytest.importorskip("fsspec")
    code, errors, asked = run(words, missing)
    [line] = errors.splitlines()
    assert (code, needed in line, bool(asked)) == (3, True, True), errors
    assert re.match(r"sessionlog: ", line)
