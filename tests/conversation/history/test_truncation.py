"""A truncation leaves a valid history, keeps what must stay, says what it did, and ends.

What seed 001 did wrong here has a test each, whose sentence names the weakness.
"""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.conversation.history.rules import is_summary, is_valid, last_turn
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.history.truncation import Truncation, truncate
from sessionlog.errors import InvalidHistory
from sessionlog.messages.message import Message
from tests.conversation.history.histories import any_history, asks, result, valid_history, weigh
from tests.profiles import examples


def user(tokens):
    return Message.user("u" * tokens)


def answer(tokens):
    return Message.assistant("a" * tokens)


def system(tokens):
    return Message.system("s" * tokens)


def cut(history, *, system_estimate=0, **fields):
    """Truncate with a budget of 100 tokens and nothing recent kept, unless it is said."""
    chosen = ConversationSettings(**({"max_conversation_tokens": 100, "truncation_keep_recent": 0} | fields))
    return truncate(history, [weigh(one) for one in history], chosen, count=weigh, system_estimate=system_estimate)


def letters(history):
    """A history as words of a role's letter and its tokens."""
    return " ".join(f"{'S' if is_summary(one) else one.role[0]}{weigh(one)}" for one in history)


def test_under_the_threshold_nothing_happens():
    """It still says what the estimate is."""
    left = cut([user(40), answer(30), user(9)])
    assert letters(left.messages) == "u40 a30 u9"
    assert (left.truncation, left.truncation.tokens_before, left.truncation.tokens_after) == (0, 79, 79)
    assert (left.truncation.is_over_budget, left.truncation.warning) == (False, None)


def test_the_oldest_go_until_three_quarters_are_not_reached():
    """A first word of a person stays, and the counts are those of what is left."""
    left = cut([user(10), *[answer(10), user(10)] * 5], system_estimate=7)
    assert letters(left.messages) == "u10 u10 a10 u10 a10 u10"
    assert left.counts == [10] * 6
    assert left.truncation == 5
    assert letters(left.truncation.dropped) == "a10 u10 a10 u10 a10"
    assert (left.truncation.tokens_before, left.truncation.tokens_after) == (117, 67)
    assert left.truncation.strategy == "drop_oldest"


def test_a_system_message_is_never_dropped():
    """Weakness of seed 001: a leading one was, as its first message was protected only with the role user."""
    left = cut([answer(50), system(50), user(50), system(20), answer(50), user(5)])
    assert letters(left.messages) == "s50 s20 u5"


def test_the_first_message_of_a_person_stays_behind_system_messages():
    """As the original promises: it says what all of it is about."""
    left = cut([system(10), system(10), user(10), answer(50), user(50), answer(50), user(5)])
    assert letters(left.messages) == "s10 s10 u10 u5"


def test_the_newest_turn_is_never_dropped():
    """With keep_recent 0 the seed left a history that ended before the question."""
    left = cut([user(50), answer(50), user(50), asks("a"), result("a", "r" * 50), answer(50)])
    assert letters(left.messages) == "u50 u50 a0 t50 a50"


def test_a_recent_tool_group_is_kept_whole():
    """Weakness of seed 001: with the tail beginning inside it, its call went, and so the recent results vanished."""
    history = [user(10), answer(60), asks("a", "b"), result("a", "r" * 9), result("b", "r" * 9), answer(5), user(1)]
    for keep_recent in (3, 4, 5):
        assert letters(cut(history, truncation_keep_recent=keep_recent).messages) == "u10 a0 t9 t9 a5 u1"


def test_what_is_still_too_long_is_said():
    """Weakness of seed 001: nobody was told."""
    left = cut([user(500), answer(10), user(500)])
    assert left.truncation == 1
    assert (left.truncation.is_over_budget, left.truncation.tokens_after) == (True, 1000)
    assert left.truncation.warning == "still over budget: 1,000 of 100 tokens"
    assert cut([user(101)]).truncation.is_over_budget
    assert cut([answer(100), user(100)]).truncation.warning is None


def test_dropped_results_are_counted():
    """Weakness of seed 001: orphans went uncounted."""
    left = cut([user(10), asks("a", text="x" * 60), result("a", "r" * 20), user(1)])
    assert (left.truncation, letters(left.truncation.dropped)) == (2, "a60 t20")
    orphan = cut([user(10), result("zz", "r" * 80), user(1), answer(1)])
    assert (orphan.truncation, letters(orphan.messages)) == (1, "u10 u1 a1")


def test_what_repairs_the_history_is_enough():
    """Where orphans were what made it too long, nothing that makes sense goes."""
    assert letters(cut([answer(60), result("zz", "r" * 60), user(1)]).messages) == "a60 u1"


def test_calls_that_wait_for_their_results_stay():
    """Those that come would have no call."""
    left = cut([answer(70), asks("a", "b", text="x" * 70), result("b")])
    assert letters(left.messages) == "a70 t5"


def test_cutting_does_not_begin_under_its_target():
    """The seed dropped one message first and looked then; a second time it dropped the next."""
    left = cut([user(1), answer(1), user(1), answer(1), user(1)], truncation_threshold=0)
    assert left.truncation == 0


def test_hardly_more_than_what_is_recent_is_left_alone():
    """As the seed has it: one message more than those to keep is not worth it."""
    assert cut([answer(90), user(5)], truncation_keep_recent=1).truncation == 0
    assert cut([answer(90), answer(5), user(5)], truncation_keep_recent=1).truncation == 1


def test_an_older_summary_is_no_first_word_of_a_person():
    """Without a summary's strategy it goes as any other."""
    summary = Message("user", "x" * 50, extra={"summary": True})
    assert letters(cut([summary, answer(40), user(5)]).messages) == "a40 u5"


def test_every_message_is_weighed_once():
    """Weakness of seed 001: all that was left was estimated again for each message dropped."""
    calls = []
    history = [user(10) if n % 2 else answer(10) for n in range(2001)]

    def count(message):
        calls.append(message)
        return weigh(message)

    chosen = ConversationSettings(max_conversation_tokens=100)
    left = truncate(history, [weigh(one) for one in history], chosen, count=count)
    assert (left.truncation > 1900, len(calls)) == (True, 0)


def test_a_truncation_can_be_copied():
    """A response that holds one is pickled and copied as any value."""
    made = cut([user(500), answer(10), user(500)]).truncation
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (other, other.__dict__) == (1, made.__dict__)
    assert Truncation() == 0


# Summaries


def brief(history):
    return f"{len(history)} messages"


def summarise(history, summary=brief, **fields):
    return cut(history, truncation_strategy="summarise", summary=summary, **fields)


def test_a_summary_stands_where_messages_were_dropped():
    """As a user message, which the truncation marks."""
    left = summarise([user(10), system(5), answer(60), user(9), answer(9), user(1)])
    assert letters(left.messages) == "u10 s5 S10 u9 a9 u1"
    assert left.messages[2] == Message("user", "1 messages", extra={"summary": True})
    assert (left.truncation, left.truncation.strategy, left.truncation.tokens_after) == (1, "summarise", 44)


def test_more_goes_than_must_so_that_the_next_summary_is_far():
    """Down to half of the budget; each one may cost a request."""
    history = [user(10), *[answer(10), user(10)] * 4]
    assert letters(summarise(history).messages) == "u10 S10 u10 a10 u10"


def test_an_older_summary_is_summed_up_with_what_came_after_it():
    """There is never more than one."""
    seen = []

    def summary(history):
        seen.append(letters(history))
        return "short"

    first = summarise([user(10), answer(60), user(9), answer(9), user(1)], summary)
    second = summarise([*first.messages, answer(50), user(1)], summary)
    assert letters(first.messages) == "u10 S5 u9 a9 u1"
    assert seen == ["a60", "S5 u9 a9 u1 a50"]
    assert letters(second.messages) == "u10 S5 u1"


def test_a_summary_is_not_summed_up_alone():
    """Nothing that was said would go, and each time it would lose some of what it says."""
    history = [user(90), Message("user", "x" * 30, extra={"summary": True}), user(90)]
    left = summarise(history, lambda _: pytest.fail("asked for nothing"))
    assert (left.truncation, left.messages, left.truncation.is_over_budget) == (0, history, True)
    assert letters(summarise([*history, answer(5), user(1)]).messages) == "u90 S10 u1"


@pytest.mark.parametrize("length", [11, 80, 10_000])
def test_a_summary_too_long_is_cut_and_says_so(length):
    """One as long as what it stands for, or longer, would bring the next truncation at once."""
    left = summarise([user(10), answer(80), user(1)], lambda _: "x" * length)
    assert letters(left.messages) == "u10 S10 u1"
    assert left.messages[1].text.endswith("x…")
    assert left.truncation.warning == f"the summary was cut from {length:,} tokens to the 10 it has room for"
    assert left.truncation.tokens_after == 21


def test_a_summary_never_takes_more_than_it_stands_for():
    """Else a truncation would make a history longer."""
    left = summarise([user(75), answer(2), answer(1), user(2)], lambda _: "xxxx")
    assert letters(left.messages) == "u75 S3 u2"


def test_summaries_as_long_as_what_they_stand_for_bring_no_loop():
    """Over many turns there is one summary, it stands under the target, and is made anew only when turns went into it."""
    calls = []

    def as_long(gone):
        calls.append(sum(not is_summary(one) for one in gone))
        return "".join(one.text for one in gone)

    history = [user(1)]
    for _ in range(200):
        left = summarise([*history, user(4), answer(9)], as_long)
        history = left.messages
        assert left.truncation.tokens_after < 80
        assert sum(map(is_summary, history)) <= 1
    assert len(calls) <= 100
    assert min(calls) > 0


@pytest.mark.parametrize(
    ("text", "says"), [("", "is empty"), (" \n", "is empty"), ("x", "has 1,000 tokens where there is room for 10")]
)
def test_a_summary_that_cannot_be_used_is_left_out_and_says_so(text, says):
    """The dropped messages are as gone as with drop_oldest."""
    history = [user(10), answer(80), user(1)]
    chosen = ConversationSettings(
        max_conversation_tokens=100, truncation_keep_recent=0, truncation_strategy="summarise", summary=lambda _: text
    )
    left = truncate(history, [10, 80, 1], chosen, count=lambda message: 1000 if is_summary(message) else weigh(message))
    assert letters(left.messages) == "u10 u1"
    assert left.truncation.warning == f"the summary {says}, so it was left out"


def test_a_summary_is_a_text():
    """What cannot be one is named; what the function raises passes through."""
    history = [user(10), answer(80), user(1)]
    with pytest.raises(InvalidHistory, match="summary returned NoneType; it returns a text"):
        summarise(history, lambda _: None)
    with pytest.raises(ZeroDivisionError):
        summarise(history, lambda _: 1 / 0)


# A function of one's own


def test_a_function_of_ones_own_decides():
    """It gets the history and the settings, and is named in what was done."""

    def only_the_newest(history, chosen):
        assert chosen.max_conversation_tokens == 100
        return history[last_turn(history) :]

    left = cut([user(50), answer(50), user(5)], truncation_strategy=only_the_newest)
    assert (letters(left.messages), left.counts) == ("u5", [5])
    assert (left.truncation, left.truncation.strategy, left.truncation.tokens_after) == (2, "only_the_newest", 5)
    assert cut([user(1)], truncation_strategy=only_the_newest).truncation.strategy == "only_the_newest"


def test_a_function_may_do_nothing():
    """But results without a call go first, as always: it is not blamed for them."""
    history = [result("zz", "x" * 90), user(1)]
    left = cut(history, truncation_strategy=lambda messages, _: messages)
    assert (left.truncation, letters(left.messages)) == (1, "u1")
    assert cut([user(90)], truncation_strategy=lambda messages, _: list(messages)).truncation == 0
    went_on = [asks("a", text="x" * 90), user(1)]
    assert cut(went_on, truncation_strategy=lambda messages, _: messages).truncation == 0


def test_a_function_may_add():
    """A summary of its own, in a history as long as before."""
    history = [result("zz"), answer(90), user(1)]
    left = cut(history, truncation_strategy=lambda messages, _: [system(2), *messages])
    assert (left.truncation, letters(left.messages)) == (1, "s2 a90 u1")


def test_a_function_may_shorten_and_drop_what_is_there_twice():
    """What it replaced is gone, and one of two that are the same message."""
    twice = answer(5)
    history = [twice, asks("a"), result("a", "r" * 80), twice, user(1)]

    def shorten(messages, _):
        return [messages[0], messages[1], result("a", "cut"), messages[4]]

    left = cut(history, truncation_strategy=shorten)
    assert (left.truncation, letters(left.messages), letters(left.truncation.dropped)) == (2, "a5 a0 t3 u1", "t80 a5")


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (lambda history: None, "mine returned NoneType; a truncation returns a list of Message"),
        (lambda history: ["x"], "mine returned list; a truncation returns a list of Message"),
        (lambda history: history[:1], "mine dropped the newest user message"),
        (lambda history: [history[0], *history[2:]], "mine left a tool call without its result, or a result without"),
        (lambda history: [*history[:2], *history[3:]], "mine left a tool call without its result, or a result without"),
    ],
)
def test_a_function_that_breaks_the_rules_is_named(returned, says):
    """What it leaves is looked at before anything is taken over."""

    def mine(history, _):
        return returned(history)

    with pytest.raises(InvalidHistory) as raised:
        cut([answer(50), asks("a"), result("a", "r" * 50), user(5)], truncation_strategy=mine)
    assert str(raised.value).startswith(says)


# Laws

_settings = st.builds(
    dict,
    max_conversation_tokens=st.integers(1, 300),
    truncation_threshold=st.sampled_from([0, 0.3, 0.8, 1]),
    truncation_keep_recent=st.integers(0, 8),
    system_estimate=st.integers(0, 60),
)
_summaries = st.one_of(
    st.integers(0, 500).map(lambda size: lambda _: "y" * size),
    st.sampled_from([1, 2]).map(lambda times: lambda gone: "".join(one.text for one in gone) * times),
)
_strategies = st.just({}) | _summaries.map(lambda made: {"truncation_strategy": "summarise", "summary": made})


def check_laws(history, left, again):
    dropped, truncation = left.truncation.dropped, left.truncation
    newest = last_turn(history)
    assert all(any(one is kept for kept in left.messages) for one in history[newest : newest + 1])
    systems = [one for one in history if one.role == "system"]
    assert [one for one in left.messages if one.role == "system"] == systems
    assert truncation == len(dropped)
    assert (truncation > 0) == (left.messages != history)
    assert truncation.tokens_after <= truncation.tokens_before
    assert left.counts == [weigh(one) for one in left.messages]
    assert truncation.is_over_budget == ("still over budget" in (truncation.warning or ""))
    assert (again.truncation, again.messages) == (0, left.messages)


@given(valid_history, _settings, _strategies)
@examples(300)
def test_a_valid_history_stays_valid(history, fields, strategy):
    """The newest turn and the recent messages stay whole, system messages too; a second time nothing goes."""
    left = cut(history, **fields, **strategy)
    assert is_valid(left.messages)
    check_laws(history, left, cut(left.messages, **fields, **strategy))
    kept = min(last_turn(history), max(0, len(history) - fields["truncation_keep_recent"]))
    assert all(
        a is b for a, b in zip(history[kept:], left.messages[len(left.messages) - len(history) + kept :], strict=True)
    )


@given(any_history, _settings, _strategies)
@examples(400)
def test_any_history_that_is_cut_becomes_valid(history, fields, strategy):
    """Whatever was wrong with it; a second time nothing goes."""
    left = cut(history, **fields, **strategy)
    assert left.truncation == 0 or is_valid(left.messages)
    check_laws(history, left, cut(left.messages, **fields, **strategy))
