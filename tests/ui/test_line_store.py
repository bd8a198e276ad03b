"""The compressed list of laid-out lines."""

from sessionlog.ui.line_store import PAGE, LineStore


def test_lines_come_back_as_they_were_added():
    """Every line of many blocks is returned, by any order of numbers, and lines beyond the end are empty."""
    store = LineStore()
    for block in range(50):
        store.add_block([[(f"{block}.{line}", "note"), ("x", "")] for line in range(37)])
    assert len(store) == 50 * 37 > 6 * PAGE
    assert list(store.starts) == [block * 37 for block in range(50)]
    for number in (*range(len(store) - 1, -1, -7), *range(0, len(store), 11)):
        assert [tuple(part) for part in store.line(number)] == [(f"{number // 37}.{number % 37}", "note"), ("x", "")]
    assert store.line(len(store)) == []
