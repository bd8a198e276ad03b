"""A turn is a user prompt and everything until the next one."""

from types import SimpleNamespace

from sessionlog.context.snapshots.turns import between_ms, fold_turns, number_turns, steps_of, turn_seconds
from sessionlog.messages.read import read_entries
from tests.context.talks import answer, ask, call, result, tool_loop, user


def turns(*talk):
    return number_turns(read_entries(talk))


def test_a_prompt_opens_a_turn():
    """Answers and tools go on with it."""
    assert number_turns(read_entries(tool_loop())) == [1, 1, 1, 1, 2, 2, 2, 2]


def test_prompts_in_a_row_are_one():
    """What is said before the model answers is one prompt; what comes before any prompt is no turn."""
    assert turns(answer("Welcome"), ask(user("a")), ask(user("b")), answer("c"), ask(user("d"))) == [0, 1, 1, 1, 2]


def test_a_prompt_beside_results_opens_a_turn():
    """Where parts say themselves that it is a prompt; words that a tool adds to its result in the same run are none."""

    def sent(run, reply):
        return SimpleNamespace(kind="request", parts=[result("c", "x"), user("b")], run_id=run), answer(reply)

    asked = SimpleNamespace(kind="response", parts=[call("read", "c")], run_id="1")
    assert turns(ask(user("a")), asked, *sent(None, "y")) == [1, 1, 2, 2]
    assert turns(ask(user("a")), asked, *sent("2", "y")) == [1, 1, 2, 2]
    assert turns(ask(user("a")), asked, *sent("1", "y")) == [1, 1, 1, 1]


def test_without_a_prompt_there_is_no_turn():
    """A history of tools alone is all of one piece."""
    assert turns(answer(call("read", "c")), ask(result("c", "x"))) == [0, 0]


def test_steps_are_timed_and_numbered():
    """From request to answer where both times are known; the turn is that of the prompt."""
    steps = steps_of(read_entries(tool_loop()))
    assert [(step.request_num, step.turn_id, step.duration_ms) for step in steps] == [
        (1, 1, None), (2, 1, 1000), (3, 2, 1000), (4, 2, 2000),
    ]  # fmt: skip
    assert steps[2].tool_names == ("read", "grep")


def test_turns_are_summed():
    """Every step is of one turn; a turn's time is from its first message to its last."""
    messages = read_entries(tool_loop())
    folded = fold_turns(steps_of(messages), turn_seconds(messages))
    assert {number: turn.input_tokens for number, turn in folded.items()} == {1: 250, 2: 460}
    assert {number: turn.duration_seconds for number, turn in folded.items()} == {1: 2, 2: 4}
    assert folded[2].tool_names == ("read", "grep")


def test_without_times_the_steps_tell():
    """Known durations are added up where nobody knows how long a turn took."""
    folded = fold_turns(steps_of(read_entries(tool_loop())), {})
    assert folded[2].duration_seconds == 3


def test_time_that_went_backwards_is_unknown():
    """A clock that was set back takes no time from anyone."""
    assert between_ms("2026-11-21T10:00:01Z", "2026-11-21T10:00:00Z") is None
    assert between_ms(None, "2026-11-21T10:00:00Z") is None
    assert between_ms("2026-11-21T10:00:00Z", "2026-11-21T10:00:00.5Z") == 500
