"""Hits of a search as lines: the words are in sight, marked, and nothing of a log acts on a terminal or in a shell."""

import re
from datetime import UTC, datetime
from itertools import accumulate

import pytest

from sessionlog.render.find import found_document, render_found, render_mended, replay_command
from sessionlog.render.report import View
from sessionlog.search.find import Found, Hit, Session
from sessionlog.sources.fold_items import Kind

VIEW = View(width=70, tz="UTC", now=datetime(2026, 11, 21, tzinfo=UTC), home="/home/ada")


def hit(text, **more):
    """A hit in an answer, with `<` and `>` around what was found."""
    pieces = re.split("[<>]", text)
    ends = list(accumulate(map(len, pieces)))
    session = Session("pi", "s-1", more.pop("name", "s-1"), "/home/ada/src", "the prompt")
    values = {
        "session": session, "kind": Kind.ANSWER, "time_ns": 1_795_255_080_000_000_000, "turn": 3, "tool": "",
        "path": "/log", "where": "log", "text": "".join(pieces), "marks": list(zip(ends[::2], ends[1::2], strict=False)),
        "item": None,
    }  # fmt: skip
    return Hit(**{**values, **more})


def lines(*hits):
    """Their lines, with `<` and `>` around what has the style of found words."""
    found = Found(hits=hits, total=len(hits), is_exact=True, seconds=0.01)
    return [
        "".join(f"<{text}>" if style == "found" else text for text, style in line.parts)
        for line in render_found(found, VIEW)
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("first\n\t a <word> and <more>\nlast", "a <word> and <more>"),
        (f"{'x' * 50} <word>", f"…{'x' * 32} <word>"),
        (f"some words before {'x' * 15} <word> after", f"…before {'x' * 15} <word> after"),
        (f"{'日' * 50} <word>", "…日日日日日日日日日日日 <word>"),
        (f"{'x' * 50} <word> {'y ' * 50}", "…xxxxxxxxxxx <word> y y y y y y y y y y…"),
        (f"<word> {'x ' * 50}", f"<word> {'x ' * 16}…"),
        ("<wo\x1b[2Jrd>", "<wo\\x1b[2Jrd>"),
        ("<two\nlines> end", "<two>"),
    ],
)
def test_the_line_with_the_words(text, shown):
    """It is cut around them, and what is cut is marked."""
    [line] = [one for one in lines(hit(text)) if "turn 3" in one]
    assert line.partition("answer")[2].strip() == shown
    assert len(line.replace("<", "").replace(">", "")) <= VIEW.width + 2


def test_a_text_that_is_gone():
    """The line says so, and no command is shown that has nothing to open."""
    shown = lines(hit("", where="index"))
    assert any("only the index remembers it" in line for line in shown)
    assert not any("sessionlog replay" in line for line in shown)
    [document] = found_document(Found(hits=(hit("", where="index"),), total=1, is_exact=True, seconds=0.0))["hits"]
    assert document["replay"] is None


def test_an_error_that_only_the_index_remembers():
    """Is listed, without what followed."""
    found = Found(hits=(hit("", where="index", kind=Kind.ERROR),), total=1, is_exact=True, seconds=0.01)
    shown = [line.plain for line in render_mended(found, [], VIEW)]
    assert shown[0].startswith("1 error in 1 session")
    assert any("only the index remembers it" in line for line in shown)


def test_a_command_is_quoted():
    """An id of a log is no command of a shell."""
    assert replay_command(hit("", name="$(x); y")).startswith("sessionlog replay '$(x); y' --at ")
    assert replay_command(hit("", time_ns=None)) == "sessionlog replay s-1"


def test_marks_are_places_in_the_text():
    """In characters."""
    found = Found(hits=(hit("a <b> c <d>"),), total=1, is_exact=True, seconds=0.0)
    [document] = found_document(found)["hits"]
    assert (document["text"], document["marks"]) == ("a b c d", [[2, 3], [6, 7]])


def test_labels_take_no_more_than_they_need():
    """A call, its result, and a failed one are distinguished; long names are cut."""
    names = {Kind.CALL: "read", Kind.RESULT: "read", Kind.ERROR: "read", Kind.PROMPT: ""}
    shown = lines(*(hit("text", kind=kind, tool=tool) for kind, tool in names.items()))
    assert [line.partition("turn 3    ")[2] for line in shown if "turn 3" in line] == [
        "read    text", "→ read  text", "✘ read  text", "you     text",
    ]  # fmt: skip
    [line] = [
        one for one in lines(hit("text", kind=Kind.CALL, tool="mcp__server__a_very_long_name")) if "turn 3" in one
    ]
    assert line.endswith("mcp__server__a_very…  text")
