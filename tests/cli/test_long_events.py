"""An event of many megabytes is read by every command, not only counted by reports."""

import json

import pytest

from sessionlog import SessionLogger

SIZE = 9 << 20


@pytest.fixture
def log(tmp_path, monkeypatch, home):
    """A log with such a prompt."""
    monkeypatch.setenv("SESSIONLOG_DIR", str(tmp_path / "logs"))
    words = "needle " + "some words " * (SIZE // 11)
    with SessionLogger(None, "long", prompt="hello") as log:
        log.emit("llm.request", {"model": "m", "messages": [{"role": "user", "content": words}]})
        log.emit("llm.response", {"model": "m", "content": "done", "usage": {"input": 9, "output": 1}})
    return log.path


def test_every_command_reads_a_long_event(cli, log):
    """Nothing is skipped, and what it says is shown."""
    replayed = cli("replay", "--json", log)
    assert (replayed.code, replayed.err) == (0, "")
    request = json.loads(replayed.out.splitlines()[1])
    assert request["data"]["messages"][0]["content"].startswith("needle some words")
    assert "needle" in cli("replay", log).out
    assert cli("context", log, "--json").json["estimated_tokens"] > 1_000_000
    assert cli("find", "needle", "--json").json["hits"]
    for command in (("check", log), ("diff", log, log), ("scrub", log), ("usage", log)):
        ran = cli(*command)
        assert (ran.code, "too_long" in ran.out + ran.err) == (0, False), command
