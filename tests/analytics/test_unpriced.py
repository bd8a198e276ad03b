"""Models without a price: which, why, and what to do."""

import pytest

from sessionlog.analytics.unpriced import list_unpriced
from sessionlog.errors import InvalidQuery
from sessionlog.pricing.book import PriceBook
from tests.analytics.week import DATA, NOW
from tests.ledger.entries import PRICES
from tests.sources.logs import answered, start, write_log


def unpriced(path=DATA / "week", **options):
    """Models of logs."""
    return list_unpriced(path, **({"prices": PRICES, "now": NOW} | options))


def test_models_with_a_cost_are_left_out():
    """The most used first, with how many requests have none."""
    found = unpriced()
    assert [(row.provider, row.model, row.unpriced_requests) for row in found.rows] == [
        ("stranger", "nova", 1),
        ("codex", "house-model", 1),
    ]
    assert found.totals.unpriced_requests == 2
    assert {row.why for row in found.rows} == {"no list has this name at this provider"}
    assert unpriced(limit=1).hidden_rows == 1
    assert unpriced(prices=PriceBook.load({"*": {"input": 1, "output": 1}})).summary == "every request has a cost"
    with pytest.raises(InvalidQuery, match="cannot sort by 'colour'"):
        unpriced(sort="colour")


@pytest.mark.parametrize(
    ("provider", "model", "why", "step"),
    [
        ("vllm", "qwen", "a model server of your own", '[prices."vllm/qwen"]'),
        ("openai", "gpt-nobody", "no list has this name", '"openai/gpt-nobody" = "vendor/model"'),
        ("openai", "whisper-1", "no price of its tokens", '[prices."openai/whisper-1"]'),
        ("openai", "codex-auto-review", "none for the time of its requests", '[prices."openai/codex-auto-review"]'),
        ("", "mine", "your alias", "[aliases]"),
        ("openai", "unknown", "names no model", ""),
    ],
)
def test_each_has_its_reason_and_the_next_step(tmp_path, provider, model, why, step):
    """The lines to write have the name as config.toml needs it."""
    answer = answered("2026-04-01T10:00:02Z", model=model, usage={"input": 10, "output": 5})
    write_log(tmp_path / "s.jsonl", start("2026-04-01T10:00:00Z", provider=provider, model=model), answer)
    book = PriceBook.load({"mine": "nobody/knows"})
    [row] = unpriced(tmp_path, prices=book).rows
    assert why in row.why
    assert step in row.next_step
    assert bool(row.next_step) == bool(step)


def test_the_document_has_reason_and_step():
    """And the notes of the table have the steps."""
    found = unpriced()
    row = found.to_dict()["rows"][0]
    names = ["provider", "model", "requests", "unpriced_requests", "total_tokens", "why", "next_step"]
    assert list(row) == names
    assert found.to_dict()["schema"] == "sessionlog.unpriced/1"
    assert next(found.footnotes()) == f"stranger/nova: {row['next_step']}"
