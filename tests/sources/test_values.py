"""Values as agents log them: one spelling for each folder."""

import json
from pathlib import Path

import pytest

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.sources.values import folder
from tests.sources.homes import build_home


@pytest.mark.parametrize(
    ("logged", "read"),
    [
        ("/w/api", "/w/api"), ("/c:/x", "/c:/x"), ("C:\\x", "C:\\x"), ("c:\\x", "C:\\x"), ("c:/x/y", "C:\\x\\y"),
        ("D:/x\\y", "D:\\x\\y"), ("c:", "C:"), ("\\\\?\\c:\\x", "C:\\x"), ("c:/x//y/", "C:\\x\\y"), ("c:\\", "C:\\"),
        ("\\\\?\\UNC\\host\\share\\x", "\\\\host\\share\\x"),
        ("\\\\host\\share\\c:", "\\\\host\\share\\c:"), ("ab:\\x", ""), ("w/c:/x", ""), ("api", ""), ("", ""), (7, ""),
    ],
)  # fmt: skip
def test_a_folder_is_absolute_and_of_a_drive_spelled_in_one_way(logged, read):
    """The case of a drive's letter and its separators make no other project; what is no drive stays as it is."""
    assert folder(logged) == folder({"a": {"b": logged}}, "a", "b") == read


AGENTS = (
    ("claude-code", "endings", "/w/api"), ("codex", "one-session", "/w/api"), ("pi", "branches", "/w/api"),
    ("qwen-code", "sub-agent", "/w/api"), ("copilot", "session", "/w/api"), ("droid", "session", "/w/api"),
    ("grok", "turns", "/w/api"), ("cline", "session", "/w/api"), ("openclaw", "jsonl", "/w/claw"),
    ("amp", "messages", "/w/my%20api"),
)  # fmt: skip


@pytest.mark.parametrize(("source", "case", "logged"), AGENTS)
@pytest.mark.parametrize("spelled", ["c:\\w\\api", "C:/w/api"])
def test_a_drive_is_one_project_in_every_source(source, case, logged, spelled, tmp_path):
    """Wherever its logs name the folder."""
    home = build_home(f"{source}/{case}", tmp_path)
    for path in filter(Path.is_file, home.rglob("*")):
        given = path.read_bytes().replace(f"file://{logged}".encode(), b"file:///c:/w/api")
        path.write_bytes(given.replace(logged.encode(), json.dumps(spelled)[1:-1].encode()))
    report = aggregate_usage([home], by=("project",), filters={"source": [source]}, env={"HOME": str(tmp_path)})
    assert {row.keys["project"] for row in report.rows} == {"C:\\w\\api"}
