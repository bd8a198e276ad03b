"""A source may return one object for several rows: reading a log changes no step."""

from msgspec import Struct

from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.kit import Response, Tokens, json_lines, source

ONE = Response(time=None, model="m", tokens=Tokens(TokenUsage(input=1, output=1)), final=True)


class Row(Struct):
    """A row without anything."""


def test_a_response_that_is_returned_for_several_rows_counts_for_each(tmp_path):
    """Each has the place of its row as its key, when it is read and when it is scanned after that."""
    made = source(
        id="x", title="X", places=(), logs="*.jsonl", rows=json_lines(Row), steps=lambda *_: [ONE], is_row=lambda _: True,
    )  # fmt: skip
    for name in ("one.jsonl", "two.jsonl"):
        log = tmp_path / name
        log.write_text("{}\n" * 5)
        events = [event for event in made.read(str(log), None) if getattr(event, "type", "") == "llm.response"]
        [session] = made.scan(str(log), None).sessions
        assert (len(events), len({record.key for record in session.records})) == (5, 5)
