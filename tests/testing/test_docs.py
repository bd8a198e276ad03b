"""docs/testing.md: its tests record and replay, its blocks run, and what it shows is what is printed."""

import asyncio
import inspect
import re
import warnings
from contextlib import suppress
from pathlib import Path

import httpx2
import openai  # noqa: F401 - a run within this one forgets what it imports, and each would import it again
import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import wrapper
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

from sessionlog import SessionLogger
from sessionlog.cli import main
from sessionlog.testing import ReplayModel
from sessionlog.testing.replay.pydantic_ai import RecordedModel  # noqa: F401 - as openai
from sessionlog.testing.replay.recorder import Recorder  # noqa: F401 - as openai
from tests.integrations import wire

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text("utf-8")
FIX, CLIENT, PLAIN, EDITED = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
MISS, GATES = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^    (pytest.*|sessionlog .*)$", PAGE, re.MULTILINE)


def answer(messages, info):
    """In place of the real model."""
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("read", {"path": "add.py"}, "toolu_1")])
    return ModelResponse(parts=[TextPart("It has a minus.")])


@pytest.fixture(autouse=True)
def _closed_loop():
    """pydantic-ai's `run_sync` leaves an event loop open."""
    yield
    with warnings.catch_warnings(), suppress(RuntimeError):
        warnings.simplefilter("ignore", DeprecationWarning)  # where there is no loop
        asyncio.get_event_loop().close()
    asyncio.set_event_loop(None)


@pytest.fixture
def project(pytester, monkeypatch):
    """The reader's project with both tests; whoever is asked for a real model gets a double of that name."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(wrapper, "infer_model", lambda name: FunctionModel(answer, model_name=name.partition(":")[2]))
    greeting = {**wire.CHAT["choices"][0], "message": {"role": "assistant", "content": "Hi!"}}
    server = httpx2.MockTransport(lambda _: httpx2.Response(200, json={**wire.CHAT, "choices": [greeting]}))
    monkeypatch.setattr(httpx2, "HTTPTransport", lambda **options: server)
    folder = pytester.mkdir("tests")
    for block in (FIX, CLIENT):
        (pytester.path / block.splitlines()[0].removeprefix("# ")).write_text(block)
    return folder


def run(pytester, command):
    """Run a command of the page, with this plugin and no other."""
    options = ["-p", "sessionlog.testing.pytest_plugin", "-p", "no:cacheprovider", "-W", "ignore::DeprecationWarning"]
    return pytester.runpytest_inprocess(*options, *command.split()[1:])


@pytest.fixture
def recorded(project, pytester):
    """The project after its logs were recorded."""
    run(pytester, COMMANDS[0]).assert_outcomes(passed=1)
    run(pytester, f"{COMMANDS[0].replace('fix', 'client')}").assert_outcomes(passed=1)
    return project


def test_the_tests_of_the_page_record_and_replay(recorded, pytester, monkeypatch):
    """By the commands that the page shows; the second one asks no model."""
    monkeypatch.setattr(wrapper, "infer_model", None)
    monkeypatch.setattr(httpx2, "HTTPTransport", None)
    assert COMMANDS[1] == "pytest"
    run(pytester, COMMANDS[1]).assert_outcomes(passed=2)
    assert sorted(path.name for path in (recorded / "runs").iterdir()) == ["fix.jsonl", "greeting.jsonl"]


def test_the_miss_of_the_page_is_what_is_printed(recorded, pytester):
    """For the prompt that it shows."""
    path = recorded / "test_fix.py"
    path.write_text(path.read_text().replace("test_add", "test_sub"))
    result = run(pytester, "pytest")
    result.assert_outcomes(passed=1, failed=1)
    shown = re.sub(r"(?m)^E +sessionlog\.errors\.ReplayMiss: |^E {15}", "", result.stdout.str())
    assert MISS.replace("tests/runs", f"{recorded}/runs") in shown


def test_the_other_blocks_run(recorded, capsys):
    """On the log of the first test: as a function, and with an edited step."""
    names = {}
    exec(compile(PLAIN, "testing.md", "exec"), names)
    assert re.fullmatch(r"read \d+\n", capsys.readouterr().out)
    assert names["replay"].left_out == ("system", "tools")

    def read(path: str) -> str:
        """Read a file."""
        return "def add(a, b): return a - b" if path == "add.py" else "no such file"

    exec(compile(EDITED, "testing.md", "exec"), {"read": read, "TestModel": TestModel})
    assert capsys.readouterr().out == '{"read":"no such file"}\n'


def test_the_gates_of_the_page_are_what_is_printed(tmp_path, capsys, monkeypatch):
    """For two sessions of which the second asks once more."""
    for name, count in (("main", 2), ("branch", 3)):
        with SessionLogger(tmp_path / name, "fix") as log:
            for _ in range(count):
                log.llm_request("?", model="m")
                log.llm_response("!", usage={"input": 1}, cost_usd=0.01 / count)
    monkeypatch.chdir(tmp_path)
    command = COMMANDS[2].split()[1:]
    assert main(command) == 0
    capsys.readouterr()
    assert main([word.replace("+2", "+0") for word in command]) == 1
    assert GATES in capsys.readouterr().out


def test_the_command_of_the_missing_log_is_that_of_the_page(project, pytester):
    """A reader who has not recorded yet is shown how."""
    result = run(pytester, "pytest tests/test_fix.py")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*fix.jsonl is missing; record it with: pytest --sessionlog-record 'tests/test_fix.py::*"]
    )


def test_the_page_has_the_options_that_there_are():
    """An option that is renamed would stay on the page."""
    named = set(re.findall(r"`(?:replay\.)?(\w+)=", PAGE))
    assert {"by", "ignore", "strict_end"} <= named
    assert {"by", "ignore", "strict_end"} <= set(inspect.signature(ReplayModel).parameters)
