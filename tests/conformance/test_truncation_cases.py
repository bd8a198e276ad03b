"""Histories are cut as seed 001 cuts them, or differ by a rule that says why.

A case that the table lists must differ exactly as it says there; whatever it does not list is the same in both.
"""

import pytest

from sessionlog.conversation.history.rules import is_valid
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.history.truncation import truncate
from sessionlog.messages.message import Message, ToolRequest
from tests.conformance.data import VARIABLE, document, is_here

COUNT = 18

REASONS = {
    "system messages stay": "what an agent is told to be is no history; the first user message behind them stays, too",
    "the newest turn stays": "a history that ends before the question, or in its middle, asks for another answer",
    "a recent tool group stays whole": "results that vanish with their call are not the recent messages that were asked for",
    "nothing goes under the target": "the estimate is looked at before a message goes, so cutting twice drops nothing more",
    "orphans are counted": "they are gone as well; a number that leaves them out says less was lost than was",
}

DIFFERENCES = {
    "first message system is droppable": (
        "system messages stay", {"returned": 1, "kept_ids": [0, 1, 3, 4]},
    ),
    "keep_recent 0": ("the newest turn stays", {"returned": 1, "kept_ids": [0, 2, 3]}),
    "keep_recent 1": ("the newest turn stays", {"returned": 1, "kept_ids": [0, 2, 3]}),
    "tail starts inside a tool group: recent tool results vanish": (
        "a recent tool group stays whole", {"returned": 0, "kept_ids": [0, 1, 2, 3, 4]},
    ),
    "tool message without id is always an orphan": ("the newest turn stays", {"kept_ids": [0, 2, 4]}),
    "tool result of a dropped assistant goes too": ("orphans are counted", {"returned": 2}),
    "threshold 0 always truncates": ("nothing goes under the target", {"returned": 0, "kept_ids": [0, 1, 2, 3, 4]}),
}  # fmt: skip
"""Case → the rule by which ours differs, and what ours says."""

KEPT_ORPHANS = {"tail starts inside a tool group: recent tool results vanish": {2, 3}}
"""Case → what is an orphan in the seed and none here, for its call is kept with it."""

LEFT_INVALID = {"no drop leaves orphans alone"}
"""A history under its threshold is not looked at: it stays what it was."""


def cases():
    """A test for every case, or one skipped test that says how many there are."""
    if not is_here():
        mark = pytest.mark.skip(reason=f"{VARIABLE} is not set: {COUNT} truncation cases not compared")
        return [pytest.param({}, marks=mark, id=f"{COUNT}-truncation-cases")]
    return [pytest.param(case, id=case["name"]) for case in document("truncation_cases.json")]


def message(spec):
    """A message that knows its id and tokens."""
    calls = [ToolRequest(call, "look") for call in spec.get("calls", ())]
    extra = {"case": spec["id"], "t": spec["t"]}
    return Message(spec["role"], "said", tool_calls=calls, tool_call_id=spec.get("call"), extra=extra)


def weigh(one):
    """The tokens that the case says."""
    return one.extra["t"]


@pytest.mark.parametrize("case", cases())
def test_a_history_is_cut_as_the_seed_cuts_it(case):
    """Or differs by a rule, exactly as the table says."""
    history = [message(spec) for spec in case["messages"]]
    chosen = ConversationSettings(
        max_conversation_tokens=case["budget"],
        truncation_threshold=case["threshold"],
        truncation_keep_recent=case["keep_recent"],
    )
    tokens = [weigh(one) for one in history]
    left = truncate(history, tokens, chosen, count=weigh, system_estimate=case["system_estimate"])
    ours = {"returned": int(left.truncation), "kept_ids": [one.extra["case"] for one in left.messages]}
    theirs = {name: case[name] for name in ours}
    _, changes = DIFFERENCES.get(case["name"], ("", {}))
    assert ours == theirs | changes
    assert all(theirs[name] != value for name, value in changes.items()), "a difference that is none"
    assert is_valid(left.messages) == (case["name"] not in LEFT_INVALID)
    gone = set(case["orphans_removed"]) & set(ours["kept_ids"])
    assert gone == KEPT_ORPHANS.get(case["name"], set()), "a result whose call the seed had dropped"


@pytest.mark.skipif(not is_here(), reason=f"{VARIABLE} is not set: {COUNT} truncation cases not counted")
def test_every_case_is_compared():
    """And every difference is that of a case."""
    names = [case["name"] for case in document("truncation_cases.json")]
    assert len(names) == COUNT
    assert DIFFERENCES.keys() <= set(names)


def test_every_rule_has_a_case():
    """A rule for nothing is no rule."""
    assert {rule for rule, _ in DIFFERENCES.values()} == REASONS.keys()
