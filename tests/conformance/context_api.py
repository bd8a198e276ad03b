"""The original's context cases put to ours: the inputs of `context_cases_inputs.py`, and what both say as flat facts.

The original took a token to be four characters. So that structure is compared and not two estimates, ours counts with
the same rule here.
"""

import io
import json
import re
from types import SimpleNamespace

from rich.console import Console

from sessionlog.context import (
    AgentRecorder,
    SessionUsage,
    TokenCount,
    TurnUsage,
    UsageTracker,
    extract_context_snapshot,
    extract_full_context_snapshot,
    get_agent_context_snapshot,
    register_agent,
    unregister_agent,
    usage_to_dict,
)
from sessionlog.events.times import parse_time
from tests.conformance.data import document, is_here

FILE = "context_cases.json"
COUNTS = {"tracker": 8, "extract": 4, "full_snapshot": 1, "dict_history_is_lost": 1, "registry": 1}


def thing(**fields):
    """An object with attributes, as the original was given."""
    return SimpleNamespace(**fields)


def _part(kind, **fields):
    return thing(part_kind=kind, **fields)


def _asked(*parts):
    return thing(kind="request", parts=list(parts), timestamp=None)


def _answered(*parts, tokens, ts):
    usage = thing(input_tokens=tokens[0], output_tokens=tokens[1])
    return thing(kind="response", parts=list(parts), usage=usage, timestamp=ts)


def history():
    """Two turns with tools, thinking and a refused call."""
    return [
        _asked(_part("system-prompt", content="You are terse."), _part("user-prompt", content="First question?")),
        _answered(
            _part("tool-call", tool_name="read", tool_call_id="c1", args={"path": "a.py"}),
            tokens=(100, 10), ts="2026-05-01T10:00:00Z",
        ),
        _asked(_part("tool-return", tool_call_id="c1", content="file body " * 5)),
        _answered(
            _part("thinking", content="hmm hmm hmm"), _part("text", content="First answer."),
            tokens=(150, 12), ts="2026-05-01T10:00:02Z",
        ),
        _asked(_part("user-prompt", content="Second question?")),
        _answered(
            _part("tool-call", tool_name="read", tool_call_id="c2", args='{"path":"b.py"}'),
            _part("tool-call", tool_name="grep", tool_call_id="c3", args={"q": "x"}),
            tokens=(200, 14), ts="2026-05-01T10:01:00Z",
        ),
        _asked(
            _part("tool-return", tool_call_id="c2", content="b body"),
            _part("retry-prompt", tool_call_id="c3", content="bad args"),
        ),
        _answered(_part("text", content="Second answer."), tokens=(260, 9), ts="2026-05-01T10:01:03Z"),
    ]  # fmt: skip


def stored(value):
    """The same as plain JSON, as a store keeps it."""
    return json.loads(json.dumps(value, default=lambda item: item.__dict__))


def agent():
    """An agent with two system prompts and no tools."""
    return thing(toolsets=[], _system_prompts=["Base prompt one.", "Base prompt two."])


TOOLS = [
    ("read", "Read a file", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ("grep", None, {}),
]
TURN = TurnUsage(
    input_tokens=460, output_tokens=23, requests=2, tool_calls=2, tool_names=("read", "grep"), duration_seconds=4.2
)
SESSION = SessionUsage(input_tokens=710, output_tokens=45, requests=4, tool_calls=3, turns=2, duration_seconds=9)
_EXTRACT = {
    "full": lambda: {
        "message_history": history(), "tool_definitions": TOOLS, "turn_usage": TURN, "session_usage": SESSION,
        "context_window": 8192,
    },
    "no_history": lambda: {"tool_definitions": TOOLS},
    "no_usage": lambda: {"message_history": history()},
    "zero_window": lambda: {"message_history": history()[:1], "context_window": 0},
}  # fmt: skip


def quarter(text):
    """The original's rule: four characters are a token. It is an estimate, and says so."""
    return TokenCount(len(text) // 4, exact=False)


def snapshot(name, **more):
    """One of the original's snapshots, made by ours."""
    return extract_context_snapshot(agent(), "agent-1", **_EXTRACT[name](), count=quarter, **more)


def flat(value, path=""):
    """A JSON value as facts: path → leaf; what is empty is a fact, too."""
    if isinstance(value, dict) and value:
        return {key: leaf for name, item in value.items() for key, leaf in flat(item, f"{path}.{name}").items()}
    if isinstance(value, list | tuple) and value:
        return {key: leaf for n, item in enumerate(value) for key, leaf in flat(item, f"{path}[{n}]").items()}
    if isinstance(value, str) and parse_time(value) is not None:
        value = parse_time(value)
    return {path.removeprefix("."): list(value) if isinstance(value, tuple) else value}


def table_facts(text):
    """A rendered table as facts: section and label → value and note; rows without a label go by their number."""
    facts, section = {}, "head"
    for number, line in enumerate(line for line in text.splitlines() if line.startswith("│")):
        label, value, note = (re.sub(r"\s+", " ", cell).strip() for cell in line.strip("│").split("│"))
        if label.startswith("═══"):
            section = label.strip("═ ")
            label = "unit"
        if label or value != "Tokens":
            facts[f"{section} / {label or number}"] = [value, note]
    return facts


def shown(table):
    """What a terminal of 110 columns shows."""
    out = io.StringIO()
    Console(file=out, width=110, color_system=None).print(table)
    return out.getvalue()


def fields_of(value):
    """A dataclass as JSON."""
    return {key: list(item) if isinstance(item, tuple) else item for key, item in usage_to_dict(value).items()}


def tracker_facts(case):
    """A tracker fed with the case's turns: all that it says after each, and at the end."""
    tracker = UsageTracker(case["codemode"], "sess")
    facts = {}
    for number, turn in enumerate(case["turns"]):
        usage = thing(**turn["usage"]) if case["name"] == "object_usage" else turn["usage"]
        returned = tracker.record_turn(usage, turn["counts"], turn["duration_s"])
        said = {"returned": returned, "turn_data": tracker.get_turn_data()}
        facts |= flat({**said, "turn_usage": fields_of(tracker.get_turn_usage())}, f"turn {number}")
    session = {"session_data": tracker.get_session_data(), "session_usage": fields_of(tracker.get_session_usage())}
    return facts | flat(session)


def expected_tracker_facts(case):
    """What the original said."""
    facts = {}
    for number, turn in enumerate(case["turns"]):
        facts |= flat({key: turn[key] for key in ("returned", "turn_data", "turn_usage")}, f"turn {number}")
    return facts | flat({key: case[key] for key in ("session_data", "session_usage")})


def extract_facts(name):
    """A snapshot as JSON, its totals, and both its tables."""
    made = snapshot(name)
    totals = {
        "context_total": made.get_context_total(), "context_percentage": made.get_context_percentage(),
        "history_total": made.get_history_total(),
    }  # fmt: skip
    tables = {"table": shown(made.to_table()), "table_no_context": shown(made.to_table(show_context=False))}
    return flat({"dict": made.to_dict(), **totals}) | _tables(tables)


def expected_extract_facts(case):
    """What the original said."""
    totals = {key: case[key] for key in ("dict", "context_total", "context_percentage", "history_total")}
    return flat(totals) | _tables(case)


def _tables(texts):
    return {
        f"{name}: {place}": leaf
        for name in ("table", "table_no_context")
        for place, leaf in table_facts(texts[name]).items()
    }


def full_facts():
    """The full snapshot of a small window."""
    made = extract_full_context_snapshot(
        agent(), "agent-1", 60, message_history=history(), count=quarter, env={}
    ).to_dict()
    del made["toolEnvironment"]
    return flat(made)


def lost_facts():
    """What is known of a history that is stored as JSON."""
    made = extract_context_snapshot(agent(), "agent-1", message_history=stored(history()), count=quarter)
    return {
        "messages": len(made.messages), "per_request": len(made.per_request_usage), "total_tokens": made.total_tokens,
    }  # fmt: skip


def registry_facts():
    """Two recorded runs of an agent, and an agent that nobody knows."""
    recorder = register_agent("agent-1", agent(), {"model": "openai:gpt-4"}, recorder=AgentRecorder(clock=lambda: 0))
    try:
        usage = {"input_tokens": 100, "output_tokens": 10, "cache_read_tokens": 40, "requests": 3, "tool_calls": 2}
        recorder.record_request(usage, tool_names=["read", "grep", "read"], duration_ms=1234.5)
        recorder.record_request({"input_tokens": 50, "output_tokens": 5, "requests": 1, "tool_calls": 0})
        made = get_agent_context_snapshot("agent-1")
        assert made is not None
        said = {
            "unknown": get_agent_context_snapshot("nope"), "turn_usage": fields_of(made.turn_usage),
            "session_usage": fields_of(made.session_usage), "window": made.context_window,
            "per_request": [
                {key: item for key, item in step.items() if key != "timestamp"}
                for step in made.to_dict()["perRequestUsage"]
            ],
        }  # fmt: skip
        return flat(said)
    finally:
        unregister_agent("agent-1")


def expected_registry_facts(case):
    """What the original said; the details are of its usage tracker, which is no part of this API."""
    return flat({key: item for key, item in case.items() if not key.startswith("details")})


def comparisons():
    """Yield (case, what the original says, what ours says) for every case, lazily evaluated."""
    if not is_here():
        return
    cases = document(FILE)
    for case in cases["tracker"]:
        yield f"tracker {case['name']}", expected_tracker_facts(case), lambda case=case: tracker_facts(case)
    for case in cases["extract"]:
        yield f"extract {case['name']}", expected_extract_facts(case), lambda case=case: extract_facts(case["name"])
    yield "full_snapshot", flat(cases["full_snapshot"]), full_facts
    yield "dict_history_is_lost", flat(cases["dict_history_is_lost"]), lost_facts
    yield "registry", expected_registry_facts(cases["registry"]), registry_facts
