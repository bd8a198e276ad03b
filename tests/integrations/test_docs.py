"""docs/integrations.md: each block of code records what it says."""

import asyncio
import re
import warnings
from contextlib import suppress
from pathlib import Path

import pytest

import sessionlog

PAGE = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text("utf-8")
INTEGRATIONS = {path.stem for path in Path(sessionlog.__file__).parent.glob("integrations/*.py")} - {"__init__", "runs"}
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ELSEWHERE = {"litellm", "claude_agent_sdk"}
"""Whose libraries need an environment of their own."""


def integration_of(block):
    """The integration that a block imports."""
    [name] = set(re.findall(r"sessionlog\.integrations\.(\w+)", block))
    return name


def test_every_integration_has_a_block():
    """And a block has one integration."""
    assert sorted(map(integration_of, BLOCKS)) == sorted(INTEGRATIONS)


@pytest.fixture
def closed_loop():
    """pydantic-ai's `run_sync` leaves an event loop open."""
    yield
    with warnings.catch_warnings(), suppress(RuntimeError):
        warnings.simplefilter("ignore", DeprecationWarning)  # where there is no loop
        asyncio.get_event_loop().close()
    asyncio.set_event_loop(None)


@pytest.mark.usefixtures("closed_loop")
@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if integration_of(block) not in ELSEWHERE], ids=integration_of
)
def test_a_block_records_a_session(block, tmp_path, monkeypatch):
    """One log without damage, with one answer."""
    monkeypatch.setenv("SESSIONLOG_DIR", str(tmp_path))
    exec(compile(block, "integrations.md", "exec"), {})
    assert sessionlog.aggregate_usage(str(tmp_path)).totals.requests == 1
    assert [check.damage for check in sessionlog.check_logs(str(tmp_path))] == [()]
