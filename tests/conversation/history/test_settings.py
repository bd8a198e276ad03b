"""Settings that cannot be meant cannot be made; what can be saved of them comes back."""

import pytest

from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.errors import InvalidHistory


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("max_conversation_tokens", 0, "a whole number, 1 or more"),
        ("max_conversation_tokens", 10.5, "a whole number, 1 or more"),
        ("truncation_threshold", 1.5, "a number from 0 to 1"),
        ("truncation_threshold", -0.1, "a number from 0 to 1"),
        ("truncation_threshold", float("nan"), "a number from 0 to 1"),
        ("truncation_threshold", True, "a number from 0 to 1"),
        ("truncation_keep_recent", -1, "a whole number, 0 or more"),
        ("truncation_strategy", "newest", "'drop_oldest', 'summarise', or a function"),
        ("truncation_strategy", ["drop_oldest"], "'drop_oldest', 'summarise', or a function"),
        ("summary", "a text", "a function of the messages to a text, or None"),
        ("auto_truncate", 1, "True or False"),
        ("auto_save", None, "True or False"),
        ("max_tool_rounds", -1, "a whole number, 0 or more"),
        ("retry_attempts", 0, "a whole number, 1 or more"),
        ("retry_initial_s", -1, "a number of seconds, 0 or more"),
        ("retry_max_s", "30", "a number of seconds, 0 or more"),
        ("retry_jitter_s", float("inf"), "a number of seconds, 0 or more"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(name, value, allowed):
    """As a ValueError that names the field and what is allowed."""
    with pytest.raises(ValueError) as raised:
        ConversationSettings(**{name: value})
    assert str(raised.value).startswith(f"{name} is {value!r}; it is {allowed}")


def test_summaries_need_somebody_who_makes_them():
    """Else nothing could stand for what is dropped."""
    with pytest.raises(ValueError, match="truncation_strategy 'summarise' needs `summary`"):
        ConversationSettings(truncation_strategy="summarise")


def test_bounds_are_allowed():
    """What is at the edge of sense is used by tests and scripts."""
    bounds = {
        "max_conversation_tokens": 1, "truncation_threshold": 0, "truncation_keep_recent": 0, "max_tool_rounds": 0,
        "retry_attempts": 1, "retry_initial_s": 0, "retry_max_s": 0, "retry_jitter_s": 0,
    }  # fmt: skip
    settings = ConversationSettings(**bounds)
    assert {name: getattr(settings, name) for name in bounds} == bounds
    assert ConversationSettings(truncation_threshold=1).truncation_threshold == 1


def test_what_is_saved_comes_back():
    """Functions cannot be saved: those of the settings that read stay."""

    def mine(history, settings):
        return history

    settings = ConversationSettings(
        max_conversation_tokens=500, truncation_threshold=0.5, truncation_strategy=mine, summary=str
    )
    saved = settings.to_dict()
    assert saved.keys().isdisjoint({"truncation_strategy", "summary"})
    assert ConversationSettings(truncation_strategy=mine, summary=str).with_saved(saved) == settings
    plain = ConversationSettings(truncation_strategy="summarise", summary=str)
    assert ConversationSettings(summary=str).with_saved(plain.to_dict()) == plain


@pytest.mark.parametrize(
    ("saved", "says"),
    [
        ([], "settings: list; it is an object"),
        ({"retry_attempts": "4"}, "settings: retry_attempts is '4'; it is a whole number"),
        ({"truncation_strategy": "summarise"}, "settings: truncation_strategy 'summarise' needs `summary`"),
    ],
)
def test_saved_settings_that_cannot_be_used_are_named(saved, says):
    """A later version's settings are nobody's business, wrong ones are."""
    assert ConversationSettings().with_saved({"later": 1}) == ConversationSettings()
    with pytest.raises(InvalidHistory) as raised:
        ConversationSettings().with_saved(saved)
    assert str(raised.value).startswith(says)
