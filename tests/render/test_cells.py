"""Text is as wide as rich says, and rich is asked only where it must be."""

import subprocess
import sys

import pytest
import rich.cells
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.render.cells import _ONE_CELL, cell_len, chop, cut_to, end_of
from tests.profiles import examples

LAW = examples(200)
TEXTS = st.text(
    st.one_of(st.sampled_from("ab –…✔名前é\u0301\u200d❤\ufe0f👩"), st.characters(exclude_categories=("C",))),
    max_size=30,
)


def test_what_is_taken_for_one_cell_is_one():
    """Every character that is not asked about."""
    assert {char for char in _ONE_CELL if rich.cells.cell_len(char) != 1} == set()


@LAW
@given(TEXTS)
def test_the_width_is_richs(text):
    """Whatever characters there are."""
    assert cell_len(text) == rich.cells.cell_len(text)


@LAW
@given(TEXTS, st.integers(1, 40))
def test_pieces_are_richs(text, width):
    """They make up the text, and none is too wide unless it is one character."""
    pieces = chop(text, width)
    assert "".join(pieces) == text
    assert [piece for piece in pieces if piece] == [piece for piece in rich.cells.chop_cells(text, width) if piece]


@LAW
@given(TEXTS, st.integers(0, 40))
def test_a_cut_text_is_as_wide_as_asked(text, width):
    """Where it is wider than that."""
    if cell_len(text) > width:
        assert cut_to(text, width) == rich.cells.set_cell_size(text, width)


def test_no_width_at_all_is_a_column():
    """Nothing runs for ever."""
    assert chop("abc", 0) == ["a", "b", "c"]


@pytest.mark.parametrize(("text", "asked"), [("~$1.50 – “é” ✔ ● ◌ ⊘ ✘ █░ 12 %", False), ("名前", True)])
def test_rich_is_loaded_only_for_what_may_be_wide(text, asked):
    """The signs of our own never need it."""
    code = (
        "import sys; from sessionlog.render.cells import chop, cell_len, cut_to; "
        f"cell_len({text!r}), chop({text!r}, 2), cut_to({text!r}, 1); print('rich' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{asked}\n"


@LAW
@given(st.text(max_size=40), st.integers(0, 45))
def test_the_end_of_a_text_fits(text, width):
    """And has all the room where each character takes a cell."""
    end = end_of(text, width)
    assert text.endswith(end)
    assert cell_len(end) <= width
    assert not text.isascii() or len(end) == min(len(text), width)
