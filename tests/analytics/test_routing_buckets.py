"""The classes of prompts, outcomes and rejections: every input has exactly one."""

import pytest

from sessionlog.analytics.routing_buckets import outcome_class, prompt_feature_bucket, rejection_reason

UNSIZED = "tokens=unknown,tools=no,reasoning=none"


@pytest.mark.parametrize(
    ("tokens", "size"),
    [
        (None, "unknown"), (0, "unknown"), (-5, "unknown"), (True, "unknown"), ("many", "unknown"), (1, "tiny"), (999, "tiny"),
        (1_000, "small"), (3_999, "small"), (4_000, "medium"), (15_999, "medium"), (16_000, "large"), (63_999, "large"),
        (64_000, "xlarge"), (1_000_000, "xlarge"),
    ],
)  # fmt: skip
def test_prompt_sizes_have_half_open_edges(tokens, size):
    """Each edge belongs to the larger size; what is no positive count is unknown."""
    assert prompt_feature_bucket({"estimated_tokens": tokens}) == f"tokens={size},tools=no,reasoning=none"


@pytest.mark.parametrize(
    ("features", "bucket"),
    [
        (None, UNSIZED),
        ({"requires_tools": True, "reasoning": "high"}, "tokens=unknown,tools=yes,reasoning=high"),
        ({"requires_tools": "yes", "reasoning": " "}, UNSIZED),
        ({"reasoning": 4096}, "tokens=unknown,tools=no,reasoning=4096"),
        ({"reasoning": False}, UNSIZED),
    ],
)
def test_prompt_features_name_one_bucket(features, bucket):
    """Tools need a true, reasoning a word or a number; the rest is `no` and `none`."""
    assert prompt_feature_bucket(features) == bucket


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("success", "success"), ("error", "failed"), ("failed", "failed"), ("iteration_limit", "stalled"),
        ("budget_halted", "stalled"), ("stalled", "stalled"), ("timed_out", "stalled"), ("cancelled", "cancelled"),
        ("weird", "unknown"), ("", "unknown"), (None, "unknown"), (["success"], "unknown"),
    ],
)  # fmt: skip
def test_weakness_21_both_outcome_vocabularies_are_understood(status, outcome):
    """The router's words and those of session.end fall into the same five classes."""
    assert outcome_class(status) == outcome


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('unknown provider "x"', "unknown provider"),
        ("routing: Unknown Model gpt-99; known are a, b", "unknown model"),
        ('model "m" is not supported by harness "h"; supported models: a', "model is not supported by harness"),
        ("quota:\nused up", "quota: used up"),
        ("", "unknown"),
        (None, "unknown"),
        ("x" * 1000, "x" * 60),
    ],
)
def test_rejections_fall_into_few_reasons(text, reason):
    """The names in a rejection are not its reason."""
    assert rejection_reason(text) == reason
