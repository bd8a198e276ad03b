"""The face of a snapshot: three columns, sections, names that are no markup; it fits in 80 columns."""

import io
import os
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from sessionlog.context import (
    ContextSnapshot,
    FullContextSnapshot,
    MessageDetailSnapshot,
    PromptSnapshot,
    RequestUsageSnapshot,
    SessionUsage,
    ToolDetailSnapshot,
    ToolSnapshot,
    TurnUsage,
)
from sessionlog.render.context_table import window_size

DATA = Path(__file__).parents[2] / "testdata" / "context"
EVIL = "\x1b[31m[bold red]x[/]\u202e\r\n:smile:"

STEPS = (
    RequestUsageSnapshot(request_num=1, input_tokens=900, output_tokens=30, tool_names=("read",), turn_id=1),
    RequestUsageSnapshot(
        request_num=2, input_tokens=1800, output_tokens=210, tool_names=("read", "grep", "read"), turn_id=2,
        duration_ms=2400, cache_read_tokens=900,
    ),
    RequestUsageSnapshot(
        request_num=3, input_tokens=2600, output_tokens=40, turn_id=2, duration_ms=61_000, cache_read_tokens=1700,
        cache_write_tokens=500,
    ),
)  # fmt: skip
SNAPSHOT = ContextSnapshot(
    agent_id="coder",
    system_prompt_tokens=577,
    tools=(ToolSnapshot(name="read", description=None, parameters_tokens=40, total_tokens=1448),),
    history_user_tokens=18,
    history_tool_return_tokens=700,
    current_user_tokens=51,
    current_assistant_tokens=35,
    current_tool_call_tokens=18,
    current_tool_return_tokens=200,
    per_request_usage=STEPS,
    context_window=1_000_000,
    turn_usage=TurnUsage(
        input_tokens=4400, output_tokens=250, requests=2, tool_calls=3, tool_names=("read", "grep", "read"),
        duration_seconds=65.2, cache_read_tokens=2600, cache_write_tokens=500,
    ),
    session_usage=SessionUsage(
        input_tokens=5300, output_tokens=280, requests=3, tool_calls=4, turns=2, duration_seconds=70.1,
        cache_read_tokens=2600,
    ),
)  # fmt: skip
FULL = FullContextSnapshot(
    agent_id="coder",
    model_name="claude-opus-4-5",
    context_window=200_000,
    system_prompts=(PromptSnapshot(content="Be brief.", tokens=4),),
    tools=(
        ToolDetailSnapshot(name="read", description=None, parameters_schema={}, parameters_tokens=1, total_tokens=9),
    ),
    messages=(
        MessageDetailSnapshot(role="user", content="What is this?\nAll of it.", estimated_tokens=6, in_context=False),
        MessageDetailSnapshot(
            role="assistant", content='{"path": "src/a.py"}', estimated_tokens=7, tool_name="read", is_tool_call=True
        ),
        MessageDetailSnapshot(role="tool", content="word " * 40, estimated_tokens=40, tool_name="read"),
    ),
    memory_tokens=3,
)


def text_of(table, width=80, **options):
    """What a terminal shows."""
    out = io.StringIO()
    Console(file=out, width=width, **({"color_system": None} | options)).print(table)
    return out.getvalue()


def check_golden(name, text):
    """Compare with the file; `SESSIONLOG_UPDATE_GOLDEN=1` writes it."""
    path = DATA / name
    if os.environ.get("SESSIONLOG_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.parametrize("width", [80, 160])
def test_a_snapshot_at_a_width(width):
    """Context, turn with its steps, session; no line is longer than the terminal."""
    text = text_of(SNAPSHOT.to_table(), width)
    check_golden(f"snapshot-{width}.txt", text)
    assert max(map(cell_len, text.splitlines())) <= width


@pytest.mark.parametrize("width", [80, 160])
def test_a_full_snapshot_at_a_width(width):
    """The model, the sums, and every message with its first words; what no longer fits is marked."""
    text = text_of(FULL.to_table(), width)
    check_golden(f"full-snapshot-{width}.txt", text)
    assert max(map(cell_len, text.splitlines())) <= width


def test_an_empty_snapshot():
    """Says that nothing is known; an unknown window is `?`; without its context it has two sections."""
    snapshot = ContextSnapshot(agent_id="a", context_window=0)
    text = text_of(snapshot.to_table())
    assert "0.0% of ?" in text
    assert "No usage data" in text
    assert "No session data" in text
    short = text_of(snapshot.to_table(show_context=False))
    assert "CONTEXT" not in short
    assert text.endswith(short.split("┤\n", 1)[1])


def test_a_turn_without_steps_has_its_sums():
    """What is known is shown."""
    text = text_of(ContextSnapshot(agent_id="a", turn_usage=TurnUsage(input_tokens=4321, output_tokens=7)).to_table())
    assert "4321" in text


def test_counted_is_not_estimated():
    """A number that was counted says so."""
    assert "(counted)" in text_of(ContextSnapshot(agent_id="a", estimated=False).to_table())
    assert "(estimated)" in text_of(ContextSnapshot(agent_id="a").to_table())


def test_names_are_no_commands():
    """Neither markup nor emoji nor control characters of a tool's name do anything."""
    step = RequestUsageSnapshot(request_num=1, input_tokens=1, output_tokens=1, tool_names=(EVIL,), turn_id=1)
    snapshot = ContextSnapshot(agent_id="a", per_request_usage=(step,), turn_usage=TurnUsage(tool_names=(EVIL,)))
    message = MessageDetailSnapshot(role=EVIL, content=EVIL, estimated_tokens=1, tool_name=EVIL)
    full = FullContextSnapshot(agent_id="a", model_name=EVIL, messages=(message,))
    for table in (snapshot.to_table(), full.to_table()):
        text = text_of(table, 200)
        assert "\\x1b[31m[bold red]x[/]" in text
        assert text.replace("\n", "").isprintable()
    assert "\x1b[31m[bold" not in text_of(snapshot.to_table(), 200, color_system="standard", force_terminal=True)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (0, "?"), (-1, "?"), (999, "999"), (8192, "8K"), (128_000, "128K"), (999_999, "999K"), (1_000_000, "1M"),
        (1_048_576, "1M"), (1_500_000, "1.5M"), (2_000_000, "2M"), (10_000_000, "10M"),
    ],
)  # fmt: skip
def test_windows_in_short(tokens, expected):
    """Thousands, and millions from a million on."""
    assert window_size(tokens) == expected
