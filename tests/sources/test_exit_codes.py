"""Commands that ended with an exit code: agents log them as completed, and reports count them as errors."""

import shutil

import pytest

from sessionlog.analytics.tools import aggregate_tools
from sessionlog.events.envelope import Event
from sessionlog.sources.registry import load_source
from tests.sources import homes

COMPLETED = {
    "opencode/v1-database": ('"output":"login.py\\n"}}', '"output":"login.py\\n","metadata":{"exit":CODE}}}'),
    "kilo/v1-database": ('"output":"login.py\\n"}}', '"output":"login.py\\n","metadata":{"exit":CODE}}}'),
    "openclaw/jsonl": ('"isError":false,', '"isError":false,"details":{"status":"completed","exitCode":CODE},'),
    "grok/turns": ('"status":"failed"', '"status":"completed","rawOutput":{"type":"Bash","exit_code":CODE}'),
    "copilot/session": ('"toolCallId":"c1","success":true', '"toolCallId":"c1","shellExecution":{"exitCode":CODE},"success":true'),
    "amp/messages": ('"exitCode": 1', '"exitCode": CODE'),
    "hermes/sums": ('"exit_code": 2', '"exit_code": CODE'),
}  # fmt: skip
"""Case → what its log has of a command, and the same with an exit code."""


@pytest.mark.parametrize(("code", "errors"), [("2", 1), ("-1", 1), ("0", 0), ("null", 0), ('"x"', 0), ("true", 0)])
@pytest.mark.parametrize("case", COMPLETED)
def test_a_command_that_failed_is_an_error(case, code, errors, tmp_path, monkeypatch):
    """In reports and in the replay; what is no exit code is none."""
    shutil.copytree(homes.CASES / case, tmp_path / case)
    monkeypatch.setattr(homes, "CASES", tmp_path)
    old, new = COMPLETED[case]
    [log] = [path for path in (tmp_path / case).rglob("*") if path.is_file() and old in path.read_text("utf-8")]
    log.write_text(log.read_text("utf-8").replace(old, new.replace("CODE", code)), "utf-8")
    agent, env = case.partition("/")[0], homes.environment(case, homes.build_home(case, tmp_path))
    commands = {"bash", "exec", "run_terminal_command", "Bash", "terminal"}
    rows = aggregate_tools(None, env=env, by=("tool",)).rows
    assert [row.errors for row in rows if row.keys["tool"] in commands] == [errors]
    source = load_source(agent)
    path = next(path for place in source.locate(env) for path in source.list_logs(place))
    events = [one.data for one in source.read(path, None) if isinstance(one, Event) and one.type == "tool.call"]
    assert sum(bool(data.get("error")) for data in events if data["tool"] in commands) == errors
