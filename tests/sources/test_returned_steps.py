"""What a source may return: one object for several rows, and a rank by its name."""

from msgspec import Struct
from msgspec.structs import replace

from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.kit import Response, Tokens, json_lines, source
from sessionlog.sources.record import CopyRank
from tests.ledger.entries import book_of

ONE = Response(time=None, model="m", tokens=Tokens(TokenUsage(input=1, output=1)), final=True)


class Row(Struct):
    """A row without anything."""


def source_of(step):
    """A source that returns this step for each row."""
    return source(
        id="x", title="X", places=(), logs="*.jsonl", rows=json_lines(Row), steps=lambda *_: [step], is_row=lambda _: True,
    )  # fmt: skip


def test_a_response_that_is_returned_for_several_rows_counts_for_each(tmp_path):
    """Each has the place of its row as its key, when it is read and when it is scanned after that."""
    made = source_of(ONE)
    for name in ("one.jsonl", "two.jsonl"):
        log = tmp_path / name
        log.write_text("{}\n" * 5)
        events = [event for event in made.read(str(log), None) if getattr(event, "type", "") == "llm.response"]
        [session] = made.scan(str(log), None).sessions
        assert (len(events), len({record.key for record in session.records})) == (5, 5)


def test_a_rank_may_be_a_member_of_copy_rank(tmp_path):
    """It enters the ledger as a plain number."""
    log = tmp_path / "one.jsonl"
    log.write_text("{}\n")
    book = book_of(*source_of(replace(ONE, rank=CopyRank.COPIED)).scan(str(log), None).sessions)
    assert book.query("SELECT copy_rank FROM records", {}) == [(int(CopyRank.COPIED),)]
