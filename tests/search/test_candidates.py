"""Candidates come newest first, each original once, and a copy only where no original matches."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.search import candidates as module
from sessionlog.search.candidates import Candidate, Scope, find_candidates
from sessionlog.search.query import parse_query
from sessionlog.search.segments import COPY, NO_TIME
from sessionlog.search.store import open_index
from tests.profiles import examples

ITEMS = st.tuples(
    st.integers(1, 3), st.integers(0, 5) | st.just(NO_TIME), st.integers(0, 4), st.booleans(), st.booleans()
)
"""(kind, time, digest, is a copy, has the word)."""


def packed(values):
    """As an index has them."""
    return b"".join(value.to_bytes(8, "little", signed=True) for value in values)


def fill(index, segments):
    """Insert segments; return the items with the word, in their order."""
    index.execute("INSERT INTO logs VALUES (1, 'a.jsonl', 'native', 1, 1, 1, 1, 1, 1, '', 1, 0, 0, 0, '', x'', 1)")
    number, found = 1, []
    for segment, items in enumerate(segments, 1):
        first = number
        for place, (kind, time, digest, is_copy, has_word) in enumerate(items):
            index.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, "word" if has_word else "other"))
            if has_word:
                found.append(Candidate(time, number, kind, place, digest, is_copy, (segment, place),
                                       "s", 1, "a.jsonl", "native", 0))  # fmt: skip
            number += 1
        kinds, times, digests, copies, _ = zip(*items, strict=True)
        index.execute(
            "INSERT INTO segments VALUES (?, 1, 's', 0, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?)",
            (segment, len(items), first, number - 1, min(times), max(times),
             bytes(kind | (COPY if copy else 0) for kind, copy in zip(kinds, copies, strict=True)),
             packed(times), packed(range(len(items))), packed(digests)),
        )  # fmt: skip
        index.executemany("INSERT INTO digests VALUES (?, ?)", [(digest, segment) for digest in set(digests)])
    return found


def expected(items, scope):
    """The rule, without haste: of originals with one text and time the first, of copies the first without one.

    Texts without a time are one only where a copy of the log has them at the same place.
    """
    chosen = [
        one
        for one in items
        if one.kind in scope.kinds and (scope.start_ns is None or scope.start_ns <= one.time_ns < scope.end_ns)
    ]
    originals, seen, kept = {one.digest for one in chosen if not one.is_copy}, set(), []
    for one in chosen:
        place = (one.session, one.place) if one.time_ns == NO_TIME else ()
        key = (one.digest, None if one.is_copy else (one.time_ns, *place))
        if key not in seen and not (one.is_copy and one.digest in originals):
            seen.add(key)
            kept.append(one)
    return sorted(kept, key=lambda one: (-one.time_ns, -one.number))


@pytest.mark.parametrize(("many", "dense"), [(0, 4), (1000, 4), (1000, 0)])
@given(
    segments=st.lists(st.lists(ITEMS, min_size=1, max_size=6), min_size=1, max_size=4), kinds=st.sets(st.integers(1, 3))
)
@examples(60)
def test_the_order_and_the_choice_do_not_depend_on_how_many_match(many, dense, tmp_path_factory, segments, kinds):
    """Whether all are read or only those that are wanted; the number is exact, or too great."""
    index, _ = open_index(str(tmp_path_factory.mktemp("index") / "search.sqlite3"))
    items = fill(index, segments)
    for scope in (Scope(kinds=kinds), Scope(kinds=kinds, start_ns=1, end_ns=4)):
        wanted = expected(items, scope)
        with patch.object(module, "_MANY", many), patch.object(module, "_DENSE", dense):
            found = find_candidates(index, parse_query(["word"]), scope)
        assert list(found.items) == wanted
        assert found.total >= len(wanted)
        assert found.total == len(wanted) or not found.is_exact
    index.close()
