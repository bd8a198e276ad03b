"""Notes: what every report says in the same words."""

import pytest

from sessionlog.errors import Problem
from sessionlog.render.notes import damage_note, limit_note


@pytest.mark.parametrize(
    ("count", "places", "text"),
    [
        (1, [("/my logs/a b.jsonl", 3)], "1 damaged piece skipped (a b.jsonl:3): `sessionlog check` shows it"),
        (2, [("a", 1), ("b", 0)], "2 damaged pieces skipped (a:1, b): `sessionlog check` shows them"),
        (9, [("a", 1), ("b", 2), ("c", 3)], "9 damaged pieces skipped (a:1, b:2, …): `sessionlog check` shows them"),
        (1, [("\x1b[2J", 1)], "1 damaged piece skipped (\\x1b[2J:1): `sessionlog check` shows it"),
    ],
)
def test_damage_is_one_line(count, places, text):
    """How much, where the first of it is, and what to do."""
    problems = [Problem(path=path, line=line, offset=0, kind="not_json", detail="?") for path, line in places]
    assert damage_note(count, problems) == text


@pytest.mark.parametrize(
    ("count", "text"), [(1, "1 more row (--limit)"), (2, "2 more rows (--limit)"), (1200, "1,200 more rows (--limit)")]
)
def test_what_a_limit_leaves_out_is_counted(count, text):
    """One row is no rows."""
    assert limit_note(count, "row") == text
