"""A generated corpus against what its generator knows: every token, request, session and nano-dollar, exactly."""

from datetime import datetime
from pathlib import Path

import pytest

from benchmarks.corpus import NOW, OWN_PRICES, generate
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.pricing.book import PriceBook

KINDS = {"crashed", "torn", "packed", "two models", "spaced", "go dialect", "unlogged calls"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Two megabytes in a hundred small logs: (folder, truth)."""
    folder = tmp_path_factory.mktemp("corpus") / "logs"
    return folder, generate(folder, megabytes=2, files=100)


def usage(folder, **options):
    """Usage with the corpus's prices, at its present."""
    prices = PriceBook.load(OWN_PRICES)
    return aggregate_usage(folder, prices=prices, now=datetime.fromisoformat(NOW), **options)


def as_truth(row, names):
    """A row with the truth's columns; no cost at all is none."""
    return {name: row.keys[name] if name in row.keys else getattr(row, name) or 0 for name in names}


def test_the_report_is_the_truth(corpus):
    """Per provider and model, and in the totals, nothing is lost, counted twice or rounded."""
    folder, truth = corpus
    report = usage(folder)
    assert [as_truth(row, truth["rows"][0]) for row in report.rows] == truth["rows"]
    assert as_truth(report.totals, truth["totals"]) == truth["totals"]


def test_torn_lines_are_the_only_damage(corpus):
    """Each crash in the middle of a line is one finding; quoted logs, odd spacing and packed files are none."""
    folder, truth = corpus
    report = usage(folder)
    assert report.problem_count == truth["damaged_lines"]
    assert {problem.kind for problem in report.problems} == {"torn_tail"}


@pytest.mark.parametrize("by", [(), ("session",), ("day", "project"), ("status", "meta.team")])
def test_other_groupings_add_up_to_the_same(corpus, by):
    """Whatever the rows are, their tokens, requests and money are the truth's."""
    folder, truth = corpus
    rows = usage(folder, by=by).rows
    for name in ("requests", "input_tokens", "output_tokens", "cache_read_tokens", "known_nano", "estimated_nano"):
        assert sum(getattr(row, name) or 0 for row in rows) == truth["totals"][name]


def test_a_window_splits_the_truth(corpus):
    """What lies before an instant and what lies after it are the whole."""
    folder, truth = corpus
    before = usage(folder, window="..2026-10-01T00:00:00Z").totals
    after = usage(folder, window="2026-10-01T00:00:00Z..").totals
    assert before.requests > 0
    assert after.requests > 0
    assert before.requests + after.requests == truth["totals"]["requests"]
    assert before.total_tokens + after.total_tokens == usage(folder).totals.total_tokens


def test_the_corpus_is_what_it_says(corpus):
    """It has every kind of log and the size asked for; of its lines most are small events."""
    folder, truth = corpus
    assert truth["kinds"].keys() >= KINDS
    assert truth["files"] == len(list(Path(folder).iterdir())) == 100
    assert 1_900_000 < truth["bytes"] < 2_400_000
    lines, sizes = truth["lines_by_type"], truth["bytes_by_type"]
    assert max(sizes, key=sizes.get) == "llm.request"
    assert lines["llm.delta"] + lines["progress"] > 0.6 * truth["lines"]


def test_the_corpus_is_reproducible(corpus, tmp_path):
    """The same seed writes the same bytes."""
    folder, truth = corpus
    again = tmp_path / "again"
    assert generate(again, megabytes=2, files=100) == truth
    assert {p.name: p.read_bytes() for p in again.iterdir()} == {p.name: p.read_bytes() for p in folder.iterdir()}
