"""Items: names that a person would use, and what the window holds several times."""

from sessionlog.context.xray.items import find_repeats, list_items
from sessionlog.context.xray.measure import measure_message, measure_tools
from sessionlog.context.xray.parts import sort_pieces
from sessionlog.context.xray.pieces import total
from sessionlog.context.xray.requests import name_results
from tests.context.xray.sized import result, said, system, user

LONG = "word and word " * 40


def look(*messages, tools=()):
    """Items and repeats of some messages."""
    pieces = name_results([piece for message in messages for piece in measure_message(message, None)], {})
    kinds = sort_pieces(pieces)
    defined = measure_tools(list(tools), None)
    items = list_items(kinds, pieces, defined, system="system prompt")
    assert sum(item.tokens for item in items) == total(pieces) + total(defined)
    return items, find_repeats(kinds, pieces)


def read(number, path, text, tool="read"):
    """A call and its result."""
    return said("", (f"c{number}", tool, {"path": path})), result(f"c{number}", text)


def test_things_have_names():
    """The n-th of their like in the window; a call with what it is about."""
    bash = said("running it", ("c", "bash", {"command": "ls -l"}))
    items, _ = look(system("be good"), user("hi"), said("yes"), user("go"), bash, result("c", "files"), user("on"))
    assert [item.name for item in items] == [
        "system prompt", "user message #1", "assistant message #1", "user message #2", "assistant message #2",
        "call of bash #1: ls -l", "tool results of bash #1: ls -l", "the prompt of this turn",
    ]  # fmt: skip
    assert [item.kind for item in items] == ["system", *["history"] * 5, "tool_results", "turn"]


def test_readings_of_a_file_are_one_thing():
    """Before this turn and in it."""
    first, second = read(1, "src/app.py", LONG), read(2, "src/app.py", "changed " + LONG)
    items, repeats = look(user("go"), *first, user("on"), *second, *read(3, "b.py", "b"))
    known = {item.name: item for item in items}
    assert known["read src/app.py ×2 (the same file twice)"].count == 2
    assert known["read src/app.py ×2 (the same file twice)"].kind == "tool_results"
    assert known["read b.py"].kind == "turn"
    assert [(repeat.kind, repeat.name, repeat.count) for repeat in repeats] == [("file", "read src/app.py", 2)]
    assert 0 < repeats[0].spare_tokens < repeats[0].tokens


def test_many_readings_are_counted_in_figures():
    """Words end at eight."""
    items, _ = look(user("go"), *(message for n in range(9) for message in read(n, "a.py", "x")))
    assert "read a.py ×9 (the same file 9 times)" in [item.name for item in items]


def test_definitions_of_a_server_are_one_thing():
    """Others stand alone; the provider's words about calling are one more."""
    tools = [{"name": "mcp__github__search"}, {"name": "mcp__github__read"}, {"name": "bash"}]
    items, _ = look(tools=tools)
    assert [(item.name, item.count) for item in items] == [
        ("mcp github tool definitions", 2), ("tool definition bash", 1),
        ("how to call tools (added by the provider)", 1),
    ]  # fmt: skip


def test_the_same_words_twice_are_a_repeat():
    """Trifles are not."""
    items, repeats = look(user(LONG), said("ok"), user(LONG), said("ok"), user("go"))
    assert len(items) == 5
    assert [(repeat.kind, repeat.name, repeat.count) for repeat in repeats] == [("content", "user message #1", 2)]
    assert repeats[0].spare_tokens * 2 == repeats[0].tokens


def test_the_costliest_repeat_comes_first():
    """By what could be spared."""
    again = [message for n in range(4) for message in read(n, "a.py", LONG)]
    _, repeats = look(user(LONG), user(LONG), *again)
    assert [repeat.kind for repeat in repeats] == ["file", "content"]
