"""A table fits: the least useful columns go first, texts are cut last, and it says what it hid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sessionlog.render.table import GAP, Cell, Column, fit_table
from tests.profiles import examples

LAW = examples(200)

NAME = Column("NAME", right=False, least=8)
COUNT = Column("COUNT", rank=1)
SPEED = Column("SPEED", rank=2)
COST = Column("COST")
ROWS = [["a-rather-long-name", "12", "58.1", "$1.50"], ["b", "3", "9.0", "$20.00"]]


def cells(*texts):
    return [Cell(text) for text in texts]


def fitted(width, rows=ROWS, columns=(NAME, COUNT, SPEED, COST), **options):
    return fit_table(columns, [cells(*row) for row in rows], width=width, **options)


def texts(table):
    return [line.plain for line in table.lines]


def test_columns_are_aligned_by_what_they_hold():
    """Texts to the left, numbers to the right, two spaces between, headings with their column."""
    assert texts(fitted(80)) == [
        "NAME                COUNT  SPEED    COST",
        "a-rather-long-name     12   58.1   $1.50",
        "b                       3    9.0  $20.00",
    ]


def test_a_total_stands_below_a_line():
    """The line is as wide as the table."""
    table = fitted(80, total=cells("total", "15", "", "$21.50"))
    assert texts(table)[3:] == ["─" * table.width, "total                  15         $21.50"]


@pytest.mark.parametrize(
    ("width", "hidden", "name"),
    [
        (40, (), 18),
        (39, (), 17),
        (30, (), 8),
        (29, ("speed",), 14),
        (23, ("speed",), 8),
        (22, ("count", "speed"), 14),
        (16, ("count", "speed"), 8),
        (10, ("count", "speed"), 2),
    ],
)
def test_the_highest_ranks_are_hidden_before_texts_are_cut_to_nothing(width, hidden, name):
    """A text gives way down to its least width, then columns go, and only then does it give way further."""
    table = fitted(width)
    assert (table.hidden, table.width) == (hidden, min(width, table.width))
    assert len(texts(table)[1].split("  ")[0]) == name


def test_a_cut_text_says_so():
    """It ends in an ellipsis."""
    assert texts(fitted(30))[1].startswith("a-rathe…  ")


def test_the_widest_text_is_cut_first():
    """What is short enough stays whole."""
    columns = [Column(title, title, right=False, least=4) for title in ("NAME", "WHERE")]
    assert texts(fitted(20, [["shorter", "a-rather-long-name"]], columns)) == ["NAME     WHERE", "shorter  a-rather-l…"]


def test_wide_shows_everything():
    """Lines may be as long as they like, empty columns included."""
    table = fitted(10, [["a", "", "0", "–"]], wide=True)
    assert (table.hidden, texts(table)) == ((), ["NAME  COUNT  SPEED  COST", "a                0     –"])


@pytest.mark.parametrize("nothing", ["", "0", "–"])
def test_columns_without_a_value_take_no_room(nothing):
    """An optional column of nothing is left out and not called hidden; the others stay."""
    table = fitted(80, [["a", nothing, "1", "–"]])
    assert (texts(table)[0], table.hidden) == ("NAME  SPEED  COST", ())


def test_a_value_in_the_total_keeps_its_column():
    """What is in no row may be in their sum."""
    table = fitted(80, [["a", "0", "1", ""]], total=cells("total", "7", "1", ""))
    assert "COUNT" in texts(table)[0]


def test_a_table_without_rows_is_its_heading():
    """All columns that fit."""
    assert texts(fitted(80, [])) == ["NAME  COUNT  SPEED  COST"]


def test_lines_do_not_end_in_spaces():
    """A pipe sees what a person sees."""
    columns = (COST, NAME, Column("WHY", right=False))
    rows = [["$1", "a", "because"], ["$2", "", ""], ["$3", "much longer", ""]]
    assert all(text == text.rstrip() for text in texts(fitted(80, rows, columns)))


def test_wide_characters_count_twice():
    """Alignment is by terminal cells, also where a double one is cut in half."""
    table = fitted(30, [["名前" * 9, "1", "2", "3"], ["e\u0301" * 20, "1", "2", "3"]])
    assert {cell_len(text) for text in texts(table)} <= {29, 30}


def test_styles_stay_with_their_cells():
    """Colour is the cell's, not its padding's."""
    table = fit_table([COST], [[Cell("$1", style="estimated")]], width=20)
    assert table.lines[1].parts == [("  ", ""), ("$1", "estimated")]


def test_lines_are_never_wrapped():
    """They are laid out already."""
    assert all(line.no_wrap for line in fitted(20).lines)


WORDS = st.text(st.sampled_from("abc é名…0"), max_size=40)
NUMBERS = st.text(st.sampled_from("0123456789.k$~"), max_size=9)
TABLES = st.tuples(st.integers(1, 2), st.integers(0, 8), st.integers(0, 4)).flatmap(
    lambda n: st.lists(st.tuples(*[WORDS] * n[0], *[NUMBERS] * (n[1] + 2)).map(list), min_size=n[2], max_size=n[2]).map(
        lambda rows: (
            [Column(f"T{i}", right=False, least=20) for i in range(n[0])]
            + [Column(f"N{i}", rank=i + 1) for i in range(n[1])]
            + [Column("OUT"), Column("COST")],
            rows,
        )
    )
)


@LAW
@given(TABLES, st.integers(40, 200))
def test_no_line_is_longer_than_the_terminal(table, width):
    """Whatever the names and numbers, from 40 columns on; what is hidden is among what may be."""
    columns, rows = table
    fit = fitted(width, rows, columns)
    assert max(map(cell_len, texts(fit))) <= fit.width <= width
    assert set(fit.hidden) <= {column.name for column in columns if column.rank}


@LAW
@given(TABLES, st.integers(40, 198))
def test_a_wider_terminal_hides_no_more(table, width):
    """Room is used for columns."""
    columns, rows = table
    assert set(fitted(width + 1, rows, columns).hidden) <= set(fitted(width, rows, columns).hidden)


@LAW
@given(TABLES)
def test_wide_cuts_nothing(table):
    """Every text and every number is there whole."""
    columns, rows = table
    fit = fitted(40, rows, columns, wide=True)
    assert fit.width == sum(
        max([cell_len(column.title), *(cell_len(row[i]) for row in rows)]) for i, column in enumerate(columns)
    ) + GAP * (len(columns) - 1)
    for line, row in zip(texts(fit)[1:], rows, strict=True):
        assert all(text.rstrip() in line for text in row)


def test_a_text_goes_on_over_empty_texts_to_its_right():
    """It is cut only where the next column of the row has something."""
    why = Column(title="WHY", name="why", right=False, least=6)
    rows = [["what was asked first", "", "x"], ["what was asked then", "failed", "y"]]
    fit = fitted(26, rows, [NAME, why, Column(title="ID", name="id", right=False)])
    assert texts(fit)[1:] == ["what was asked first    x", "what was aske…  failed  y"]


def test_a_path_is_cut_at_its_beginning():
    """Its end tells which it is."""
    path = Column(title="PATH", name="path", right=False, least=8, keeps_end=True)
    fit = fitted(18, [["/home/ada/src/api", "1"], ["/home/ada/src/行行行", "2"]], [path, COST])
    assert texts(fit)[1:] == ["…ada/src/api     1", "…/src/行行行     2"]
