"""What responses used, in disjoint classes, whoever served them."""

from sessionlog.events.usage import read_usage
from sessionlog.transcript.usages import ResponseUsages


def prompts(*usages, start=None):
    """All that was sent for each response, and what of it came from a cache."""
    read = ResponseUsages()
    read.begin(start or {"v": 1})
    for usage in usages:
        read.add({"provider": "p", "usage": usage})
    return [(usage.prompt, usage.cache_read) for usage in read.read()]


def test_prompt_tokens_are_all_that_was_sent():
    """Read from a cache, written to it, or neither."""
    assert prompts({"input": 1, "cache_read": 20, "cache_write": 300}, {"output": 5}) == [(321, 20), (0, 0)]


def test_inclusive_input_is_told_by_all_of_a_providers_answers():
    """Only in the Go dialect, whose start has no version."""
    inclusive, exclusive = {"input": 100, "cache_read": 40}, {"input": 10, "cache_read": 40}
    assert prompts(inclusive, start={"provider": "p"}) == [(100, 40)]
    assert prompts(inclusive, exclusive, start={"provider": "p"}) == [(140, 40), (50, 40)]
    assert prompts(inclusive, start={"resolved_harness": "claude"}) == [(140, 40)]


def test_what_is_beside_the_conversation_is_learned_from():
    """A sub-agent's answers show how a provider counts, too."""
    read = ResponseUsages()
    read.begin({"provider": "p"})
    read.add({"usage": {"input": 100, "cache_read": 40}})
    for _ in range(2):
        read.observe({"usage": {"input": 10, "cache_read": 40}})
    assert [usage.prompt for usage in read.read()] == [140]


def test_no_class_is_lost():
    """Also the part of a cache write that lasts longer."""
    usage = {"input": 1, "output": 2, "cache_read": 3, "cache_write": 5, "cache_write_1h": 4, "reasoning": 1}
    read = ResponseUsages()
    read.begin({"v": 1})
    read.add({"usage": usage})
    assert list(read.read()) == [read_usage(usage)[0]]
