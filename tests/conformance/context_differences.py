"""Where the look-up of windows and the counts of tokens deliberately differ from seed 000, by rule.

A case that a rule lists must differ, exactly as it says here; whatever is not listed is the same in both. A case is
called by its kind and its model, text or value.
"""

from typing import NamedTuple


class ContextRule(NamedTuple):
    """Why something differs, and what ours says in each case."""

    reason: str
    cases: dict[str, int]


RULES = {
    "a family's shorter name": ContextRule(
        "`gpt-4` and `o1` were tried before longer names that contain them; only a whole name is the model's",
        {
            "context_window openai:gpt-4o-2024-08-06": 128_000,
            "context_window gpt-4-turbo-2024-04-09": 128_000,
            "context_window gpt-4.1-2025-04-14": 1_000_000,
            "context_window gpt-4o-mini-2024-07-18": 128_000,
            "context_window o1-mini-2024-09-12": 128_000,
            "context_window GPT-4O": 128_000,
            "context_window x:gpt-4o:free": 128_000,
            "context_window openrouter:openai/gpt-4o": 128_000,
        },
    ),
    "Bedrock's version behind a colon": ContextRule(
        "the text after the first colon of a Bedrock id is `0`, which is no model",
        {"context_window us.anthropic.claude-sonnet-4-5-20250929-v1:0": 200_000},
    ),
    "models that the table lacked or spelled otherwise": ContextRule(
        "the table is generated from the vendors' data, and a dot and a dash are the same",
        {
            "context_window gpt-5": 400_000,
            "context_window gpt-5-mini": 400_000,
            "context_window claude-3-5-sonnet-20241022": 200_000,
            "context_window claude-3-7-sonnet": 200_000,
            "context_window claude-haiku-4-5": 200_000,
            "context_window gemini-3-pro": 1_048_576,
        },
    ),
    "Ki and thousands": ContextRule(
        "Google counts all its windows in Ki",
        {
            "context_window gemini-2.5-pro": 1_048_576,
            "context_window google-gla:gemini-2.5-flash-lite": 1_048_576,
            "context_window_table gemini-1.5-flash": 1_048_576,
            "context_window_table gemini-1.5-pro": 2_097_152,
            "context_window_table gemini-2.0-flash": 1_048_576,
            "context_window_table gemini-pro": 32_768,
            "context_window_table gemini-2.5-pro": 1_048_576,
            "context_window_table gemini-2.5-flash": 1_048_576,
            "usage_tracker_window_table gemini-1.5-flash": 1_048_576,
            "usage_tracker_window_table gemini-1.5-pro": 2_097_152,
            "usage_tracker_window_table gemini-2.0-flash": 1_048_576,
        },
    ),
    "usage_tracker_window is superseded": ContextRule(
        "a second table of twelve rows disagreed with the first; one look-up answers for both, and budgets do the rest",
        {
            "usage_tracker_window claude-3.5-sonnet": 200_000,
            "usage_tracker_window claude-sonnet-4": 200_000,
            "usage_tracker_window gpt-4.1": 1_000_000,
        },
    ),
    "a character is at least a token": ContextRule(
        "nothing that is sent is free",
        {
            "count_tokens 'a'": 1,
            "count_tokens 'abc'": 1,
            "count_tokens_json {}": 1,
            "count_tokens_json []": 1,
        },
    ),
    "pieces instead of a quarter of the characters": ContextRule(
        "four characters a token are wrong by half for JSON and for anything but English; the estimate cuts as "
        "tokenizers do, and JSON is counted compact and without escapes",
        {
            "count_tokens 'ééééééééé'": 9,
            "count_tokens '😀😀😀😀😀😀😀😀'": 8,
            "count_tokens 'x' * 4001": 445,
            "count_tokens_json 'abc'": 2,
            "count_tokens_json {'name': 'read', 'description': '', 'input_schema': {}}": 15,
            "count_tokens_json {'role': 'user', 'content': [{'type': 'text', 'text': 'Hello'}]}": 17,
            "count_tokens_json {'é': 'ü'}": 6,
            "count_tokens_json [1, 2.5, True, None]": 9,
        },
    ),
}


def difference_of(case: str) -> int | None:
    """What ours says where it differs, None where both say the same."""
    return next((rule.cases[case] for rule in RULES.values() if case in rule.cases), None)
