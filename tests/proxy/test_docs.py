"""docs/run.md: what it promises in numbers and names is so."""

import re
import shlex
from pathlib import Path

from sessionlog.cli.fast_path import parse
from sessionlog.proxy import connection, run, server
from sessionlog.proxy.upstream import _CERTIFICATES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "run.md").read_text("utf-8")


def test_each_example_is_a_command_line():
    """Every line that begins with our name runs a command with its own options."""
    examples = [shlex.split(line) for line in PAGE.splitlines() if line.startswith("    sessionlog run")]
    assert len(examples) >= 3
    for words in examples:
        assert parse(words[1:])["command"] == words[3:]


def test_the_limits_are_those_of_the_code():
    """Seconds and bytes of what is read on."""
    assert f"{server.DRAIN_SECONDS:.0f} seconds and {connection.DRAIN_BYTES >> 20} MiB" in re.sub(r"\s+", " ", PAGE)
    assert f"it is {run.LAST_SECONDS:.0f} seconds" in PAGE


def test_each_variable_of_certificates_is_named():
    """And no other."""
    named = set(re.findall(r"`([A-Z_]*(?:CERT|CA)[A-Z_]*)`", PAGE))
    assert named == {*_CERTIFICATES, "SSL_CERT_FILE"}


def test_each_variable_of_an_agent_is_set_somewhere():
    """The table names what the plans set; those of opencode and Kilo differ in the agent's name alone."""
    table = PAGE.partition("## How each agent is led")[2].partition("\n\nAn address")[0]
    plans = "\n".join(path.read_text("utf-8") for path in (ROOT / "sessionlog/proxy/agents").glob("*.py"))
    names = re.findall(r"`([A-Z_]{6,})`", table)
    assert len(names) >= 5
    assert [name for name in names if name not in plans and f'_{name.partition("_")[2]}"' not in plans] == []
