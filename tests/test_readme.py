"""The README and its pages cannot rot: their code runs, their commands and options exist, their files are there."""

import os
import re
import subprocess
import sys
import time
import tomllib
from functools import cache
from inspect import signature
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sessionlog
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.cli import PERIODS, main
from sessionlog.cli.app import COMMANDS, build_app
from sessionlog.demo.agents import write_agents

ROOT = Path(__file__).parents[1]
CI = ROOT / ".ci" / "run"
FRONT = (ROOT / "README.md").read_text("utf-8")
OTHERS = (
    "promises.md",
    "add-an-agent.md",
    "integrations.md",
    "testing.md",
    "export.md",
    "parquet.md",
    "spark.md",
    "team.md",
)
"""Pages that have tests of their own."""
PAGES = {path.name: path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in OTHERS}
README = "\n".join(PAGES.values())
CODE = dict.fromkeys(re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL))
SPANS = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", FRONT + README, flags=re.MULTILINE | re.DOTALL))
CALLS = [span for span in SPANS if span.startswith("sessionlog ")]
HEAVY = {"rich", "typer", "click", "pydantic", "dateutil", "sqlite3", "asyncio", "zstd"}


@pytest.fixture
def surroundings(tmp_path, monkeypatch):
    """A home of its own, and no settings."""
    for name in os.environ:
        if name.startswith(("SESSIONLOG_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@cache
def help_of(command):
    """What `--help` says."""
    words = [command, "--help"] if command else ["--help"]
    return CliRunner().invoke(build_app(), words, env={"COLUMNS": "200"}).stdout


def blocks(word):
    """The Python blocks in which a word stands."""
    return [block for block in CODE if word in block]


def test_the_python_blocks_run(surroundings, capsys):
    """Recording first; then the others tell what the first one recorded."""
    [recording], [measuring] = blocks("with SessionLogger("), blocks("aggregate_usage(")
    [asking], [counting] = blocks("session_status()"), blocks("sessionlog.context")
    [remembering], [keeping] = blocks("Session.resume"), blocks("RedisStore")
    assert set(CODE) == {recording, remembering, keeping, measuring, asking, counting}
    exec(compile(recording, "README.md", "exec"), {})
    assert capsys.readouterr() == ("", "")
    [log] = surroundings.glob(".local/state/sessionlog/sessions/*.jsonl")
    assert [event.type for event in sessionlog.read_events(str(log))] == [
        "session.start", "llm.request", "llm.response", "tool.call", "session.end",
    ]  # fmt: skip
    exec(compile(measuring, "README.md", "exec"), {})
    model, tokens, cost, rate = capsys.readouterr().out.split()
    assert (model, tokens) == ("claude-opus-4-5", str(812 + 96 + 14_100))
    assert float(cost) > 0
    assert float(rate) > 0.9
    exec(compile(asking, "README.md", "exec"), {})
    assert capsys.readouterr().out == "go on; 1 requests so far\n"
    counted = {}
    exec(compile(counting, "README.md", "exec"), counted)
    assert counted["window"] == 200_000
    assert 4 <= counted["count"] <= 9


def test_the_first_page_is_a_screen_and_a_half():
    """Whoever wants more follows a link; each leads to a page that is there, and no page is without one."""
    assert len(FRONT.splitlines()) <= 75
    links = set(re.findall(r"\]\(([\w./-]+)\)", FRONT))
    assert [link for link in sorted(links) if not (ROOT / link).exists()] == []
    assert {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} <= links
    for name, text in PAGES.items():
        for link in re.findall(r"\]\(([\w./-]+)\)", text):
            assert (ROOT / "docs" / link).exists(), (name, link)


def test_the_first_page_records(surroundings, capsys):
    """Its six lines write a session that `replay` shows."""
    [recording] = re.findall(r"^```python\n(.*?)^```", FRONT, re.MULTILINE | re.DOTALL)
    exec(compile(recording, "README.md", "exec"), {})
    assert capsys.readouterr() == ("", "")
    assert main(["replay", "--plain"]) == 0
    shown = capsys.readouterr().out
    for text in ("make the tests pass", "I'll run them first.", "12 passed", "success"):
        assert text in shown


def test_the_table_of_the_first_page_is_the_demos(surroundings, capsys, monkeypatch):
    """As a terminal of a hundred columns shows it."""
    [table] = re.findall(r"^```text\n(.*?)^```", FRONT, re.MULTILINE | re.DOTALL)
    write_agents(str(surroundings / "agents"), now_ns=time.time_ns())
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["usage", str(surroundings / "agents")]) == 0
    assert capsys.readouterr().out.startswith(table)


def test_the_commands_of_the_first_page_run(surroundings, capsys):
    """On a machine with one session."""
    with sessionlog.SessionLogger(prompt="hello") as log:
        log.llm_response("hi", usage={"input": 1, "output": 1})
    calls = re.findall(r"^    \.venv/bin/sessionlog (.*?)\s+#", FRONT, re.MULTILINE)
    assert len(calls) == 3
    assert [main(call.split()) for call in calls] == [0, 0, 0]
    assert capsys.readouterr().out


def test_the_session_block_remembers(surroundings, capsys):
    """Two turns, a fork, and the session again from its log."""
    names = {}
    exec(compile(blocks("Session.resume")[0], "README.md", "exec"), names)
    told = capsys.readouterr().out
    assert told == "My name is Alice. That was message 2.\nWhat's my name? That was message 4.\n"
    assert [message.role for message in names["session"].messages] == ["user", "assistant"] * 2
    assert len(names["plan_b"].messages) == 6
    assert len(list(surroundings.glob(".local/state/sessionlog/sessions/*.jsonl"))) == 2


def test_recording_costs_no_heavy_import(surroundings):
    """The first block, in a process of its own."""
    [recording] = blocks("with SessionLogger(")
    code = f"{recording}\nimport sys\nprint(*sorted(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ.copy(), timeout=60
    )
    loaded = set(ran.stdout.split())
    assert "sessionlog.logger.session_logger" in loaded
    assert HEAVY.isdisjoint(name.split(".")[0] for name in loaded)
    assert not any(
        name.startswith(("sessionlog.reader", "sessionlog.render", "sessionlog.analytics")) for name in loaded
    )


def test_the_toml_block_is_a_price(surroundings, capsys):
    """Written to the file that its comment names, it makes the model free."""
    blocks = re.findall(r"^```toml\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    [block] = [block for block in blocks if "[prices" in block]
    name = re.match(r"# ~/([^,]+),", block)[1]
    [model] = tomllib.loads(block)["prices"]
    path = surroundings / name
    path.parent.mkdir(parents=True)
    path.write_text(block, "utf-8")
    assert main(["pricing", model]) == 0
    assert "$0.00" in capsys.readouterr().out


def test_the_budget_of_the_toml_block_can_be_used(surroundings, capsys):
    """And its comments name what a budget may have."""
    blocks = re.findall(r"^```toml\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    [block] = [block for block in blocks if "[budgets" in block]
    path = surroundings / ".config/sessionlog/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(block, "utf-8")
    assert main(["budget", "check", *tomllib.loads(block)["budgets"]]) == 0
    capsys.readouterr()


def test_the_two_commands_stand_once_each():
    """Machines look for them: lines that begin with `python3 -m venv`."""
    commands = [line.strip() for line in FRONT.splitlines() if line.strip().startswith("python3 -m venv")]
    assert FRONT.count("python3 -m venv") == len(commands) == 2
    run, test = commands
    assert run.endswith("&& .venv/bin/sessionlog demo")
    assert "pip install -q . " in run
    assert test.endswith("&& .venv/bin/pytest -q -n 2")
    assert "'.[test]'" in test


@pytest.mark.skipif(not CI.exists(), reason="not in the source distribution")
def test_the_ci_runs_what_the_readme_says():
    """It reads the two lines from here, and puts the built wheel where the first one says `.`."""
    script = CI.read_text("utf-8")
    assert os.access(CI, os.X_OK)
    [pattern] = re.findall(r"grep -E '(.*?)' README.md", script)
    commands = [line for line in FRONT.splitlines() if re.search(pattern, line)]
    [replaced] = re.findall(r"main_command/(install -q \.)/install -q \$wheel", script)
    assert [command.count(f"{replaced} ") for command in commands] == [1, 0]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_documented(command):
    """Each has a row in the table."""
    assert re.search(rf"^\| `sessionlog {command}\b", README, re.MULTILINE)


@pytest.mark.parametrize("call", CALLS)
def test_calls_use_what_exists(call):
    """The command is one, and so are its options."""
    command = call.split()[1]
    if command in {*PERIODS, "calendar"}:
        return
    assert command in COMMANDS
    assert [option for option in re.findall(r"--[a-z-]+", call) if f"{option} " not in help_of(command)] == []


def test_options_named_apart_exist():
    """Those in a sentence belong to at least one command."""
    options = {
        option for span in SPANS if not span.startswith("sessionlog ") for option in re.findall(r"^--[a-z-]+", span)
    }
    known = "\n".join(help_of(command) for command in (None, *COMMANDS))
    assert options >= {"--since", "--json", "--tz"}  # sentences name some at all
    assert [option for option in sorted(options) if f"{option} " not in known] == []


def test_an_option_in_a_row_belongs_to_its_command():
    """The second column of the table names options of the command in the first."""
    rows = [line.split(" | ", 1) for line in README.splitlines() if line.startswith("| `sessionlog ")]
    for first, second in rows:
        command = re.match(r"\| `sessionlog (\S+)", first)[1].rstrip("`")
        assert [o for o in re.findall(r"`(--[a-z-]+)", second) if f"{o} " not in help_of(command)] == []


def test_every_form_of_a_window_is_understood():
    """As listed after `--since`."""
    sentence = README.partition("`--since`\nunderstands ")[2].partition("dates, RFC")[0]
    forms = [form for span in re.findall(r"`([^`]+)`", sentence) for form in span.split()]
    assert len(forms) == 11
    assert all(parse_usage_window(form) is not None for form in forms)


def test_every_file_that_is_named_is_there():
    """Tests, benchmarks, data; also in what is written for contributors."""
    pages = FRONT + README + (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = [*re.findall(r"`([^`\n]+)`", pages), *re.findall(r"\S+\.py\b", pages)]
    spans = {part.rstrip("`,;.") for span in named for part in span.split()}
    folders = (ROOT, ROOT / "benchmarks")
    named = {part for part in spans if re.fullmatch(r"(?:tests|testdata|sessionlog|benchmarks)/[\w./-]+|\w+\.py", part)}
    assert len(named) > 10
    assert [name for name in sorted(named) if not any((folder / name).exists() for folder in folders)] == []


def test_the_loggers_words_exist():
    """Methods of `log`, and the options in the list of the page on recording."""
    methods = set(re.findall(r"\blog\.(\w+)\(", README))
    assert {"emit", "callback", "health", "tool_call"} <= methods
    assert [name for name in sorted(methods) if not hasattr(sessionlog.SessionLogger, name)] == []
    section = PAGES["record.md"]
    options = set(re.findall(r"`(\w+)=[\"F]|`(\w+)=function|SessionLogger\((\w+)=", section))
    names = {name for group in options for name in group if name}
    assert {"directory", "durability", "on_error", "redact", "session_id", "provider"} == names
    assert names <= set(signature(sessionlog.SessionLogger).parameters)


@pytest.mark.parametrize("durability", re.findall(r"`durability=\"(\w+)\"`|`\"(\w+)\"` syncs", README))
def test_every_durability_exists(tmp_path, durability):
    """As named in the list under Record."""
    [word] = [word for word in durability if word]
    with sessionlog.SessionLogger(tmp_path, durability=word) as log:
        assert log.emit("note")


def test_the_scripts_that_are_called_exist():
    """`python .ci/make_prices.py`."""
    scripts = re.findall(r"python (\.ci/[\w.]+)", README)
    assert scripts
    assert [name for name in scripts if not (ROOT / name).exists()] == []
