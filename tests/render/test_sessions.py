"""The face of the list of sessions: days with their sums, one line a session, and its exact twins."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sessionlog.analytics.columns import names_of
from sessionlog.analytics.report import SummedRows, add_up
from sessionlog.analytics.sessions import COLUMNS, SessionList, SessionSummary
from sessionlog.errors import Problem
from sessionlog.render.report import render_csv
from sessionlog.render.sessions import MARKS
from sessionlog.sources.find import matching
from tests.analytics.week import NOW, check_golden, week_sessions
from tests.ledger.entries import NOON, SECOND
from tests.profiles import examples
from tests.render.shown import markdown, show

NAMES = names_of(COLUMNS)

EVIL = "\x1b[31mred\x1b[0m\r\n=cmd()|[x](y)\u202e"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
DAY = 86_400 * SECOND


def summary(name="s", **fields):
    """A finished session of yesterday noon that cost half a dollar."""
    known = dict.fromkeys(SessionSummary.__slots__, 0) | {
        "source": "native", "session": name, "path": f"{name}.jsonl", "start_ns": NOON, "last_ns": NOON,
        "status": "success", "project": "unknown", "harness": "unknown", "route": "unknown", "models": ("m",),
        "prompt": "", "error": "", "known_nano": 500_000_000, "estimated_nano": None, "cost_is_partial": False,
        "counted": True,
    }  # fmt: skip
    return SessionSummary(**(known | fields))


def found(*sessions, **fields):
    known = {"window": None, "problem_count": 0, "problems": ()}
    return SessionList(
        rows=sessions,
        totals=add_up(SummedRows, sessions),
        hidden_rows=len(fields.get("left_out", ())),
        ids=tuple(session.session for session in (*sessions, *fields.get("left_out", ()))),
        **(known | fields),
    )


def lines(sessions, width=160, **options):
    return [line.plain for line in show(sessions, **({"width": width, "tz": "UTC", "now": NOW} | options))]


@pytest.mark.parametrize("width", [80, 160])
def test_the_week_at_a_width(width):
    """Days newest first, each with what it cost; marks explained, columns hidden by rank."""
    text = "\n".join(lines(week_sessions(), width=width, home="/home/ada"))
    check_golden(f"week-sessions-{width}.txt", f"{text}\n")


def test_csv_is_the_document():
    """Every value of the JSON under its name; models are joined, null is empty."""
    sessions = week_sessions()
    header, *rows = csv.reader(io.StringIO(render_csv(sessions)))
    assert header == list(NAMES)
    for row, one in zip(rows, sessions.to_dict()["rows"], strict=True):
        texts = {key: value for key, value in one.items() if isinstance(value, str)} | {
            "models": " ".join(one["models"])
        }
        read = {
            key: cell if key in texts else json.loads(cell or "null") for key, cell in zip(header, row, strict=True)
        }
        assert read == one | texts


def test_an_empty_list_has_the_same_csv_columns():
    """A program that reads it finds its columns."""
    assert render_csv(found()) == ",".join(NAMES) + "\n"


def test_markdown_is_the_list():
    """One row a session, with its day."""
    check_golden("week-sessions.md", markdown(week_sessions(), tz="UTC", now=NOW))


# --- days


def test_days_have_a_heading_with_their_sum():
    """How many, what they cost together; days are those of the zone."""
    sessions = found(summary("a", start_ns=NOON + DAY), summary("b"), summary("c", start_ns=NOON - 12 * 3600 * SECOND))
    assert headings(lines(sessions)) == {
        "TODAY 21 Nov": "1 session · $0.50",
        "YESTERDAY 20 Nov": "2 sessions · $1.00",
    }
    assert list(headings(lines(sessions, tz="America/New_York"))) == ["TODAY 21 Nov", "YESTERDAY 20 Nov", "THU 19 Nov"]


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (1, {"TODAY 21 Nov": "3 sessions, 1 shown · ~$1.25+"}),
        (2, {"TODAY 21 Nov": "3 sessions, 2 shown · ~$1.25+"}),
        (3, {"TODAY 21 Nov": "3 sessions · ~$1.25+"}),
        (4, {"TODAY 21 Nov": "3 sessions · ~$1.25+", "YESTERDAY 20 Nov": "2 sessions, 1 shown · $1.00"}),
    ],
)
def test_a_limit_does_not_change_a_days_sum(shown, told):
    """A day that is shown in part is summed whole, and the marks of its sum are explained."""
    today = [{}, {"known_nano": None, "estimated_nano": 750_000_000}, {"known_nano": None, "cost_is_partial": True}]
    whole = [summary(f"t{n}", start_ns=NOON + DAY, **fields) for n, fields in enumerate(today)]
    whole += [summary("y0"), summary("y1")]
    text = lines(found(*whole[:shown], left_out=tuple(whole[shown:])))
    assert headings(text) == told
    assert [line[0] for line in text if line[:2] in ("~ ", "+ ")] == ["~", "+"]
    assert f"{5 - shown} more session{'' if shown == 4 else 's'} (--limit)" in text


def headings(text):
    """Day → its sum."""
    return dict(
        re.split(r"\s{2,}", line) for line in text if re.match(r"(TODAY|YESTERDAY|[A-Z]{3}|NO TIME)\s.*session", line)
    )


def test_sessions_without_a_time_have_a_heading_of_their_own():
    """They come last and have a dash for their clock."""
    text = lines(found(summary(start_ns=None)))
    assert headings(text) == {"NO TIME": "1 session · $0.50"}
    assert text[1].split()[0] == "–"


# --- what a line says


@pytest.mark.parametrize(
    ("status", "fields", "mark", "why"),
    [
        ("success", {"error": "not shown"}, "✔", ""),
        ("running", {}, "●", ""),
        ("unfinished", {}, "◌", "no end: killed?"),
        ("unfinished", {"counted": False, "error": "unknown model"}, "◌", "unknown model"),
        ("error", {"error": "overloaded"}, "✘", "overloaded"),
        ("iteration_limit", {}, "✘", "iteration limit"),
        ("unknown", {}, "·", "unknown"),
        ("unknown", {"error": "no key"}, "·", "no key"),
    ],
)
def test_a_line_says_how_it_ended_and_why(status, fields, mark, why):
    """A sign for the end, words for what was not a success."""
    text = lines(found(summary(status=status, **fields)), wide=True)[1]
    assert text.split()[1] == mark
    assert why in text
    assert "not shown" not in text


def test_further_models_are_counted():
    """The first by output is named."""
    assert "big +2  " in lines(found(summary(models=("big", "a", "b"))))[1]


def test_folders_and_prompts_are_short():
    """A folder is its end, and whole where there is room; an unknown one nothing; a prompt is quoted and cut."""
    one = summary(project="/home/ada/shop", prompt="x" * 300)
    text = lines(found(one, summary("b")), home="/home/ada")
    assert "  shop  " in text[1]
    assert "  ~/shop  " in lines(found(one), home="/home/ada", wide=True)[1]
    assert f"“{'x' * 79}…”" in text[1]
    assert "unknown" not in text[2]
    assert f"“{'x' * 199}…”" in lines(found(summary(prompt="x" * 300)), wide=True)[1]


# --- marks


PARTIAL = {"cost_is_partial": True}
NONE = {"known_nano": None, "cost_is_partial": True}
UNUSED = {"known_nano": None}


@pytest.mark.parametrize(
    ("sessions", "heading", "marks"),
    [
        ([{}], "$0.50", ""),
        ([PARTIAL], "$0.50+", "+"),
        ([{}, NONE], "$0.50+", "+"),
        ([{}, UNUSED], "$0.50", ""),
        ([NONE], None, ""),
        ([UNUSED], None, ""),
        ([{"known_nano": None, "estimated_nano": 250_000_000}], "~$0.25", "~"),
        ([{"estimated_nano": 250_000_000}, PARTIAL], "~$1.25+", "~+"),
        ([{"known_nano": 0}], "$0", ""),
    ],
)
def test_marks_are_explained_where_they_occur(sessions, heading, marks):
    """`+` only where money is shown that is not all of it; what used nothing is no missing money."""
    text = lines(found(*[summary(f"s{n}", **fields) for n, fields in enumerate(sessions)]))
    [right] = headings(text).values()
    assert right.partition(" · ")[2] == (heading or "")
    assert "".join(line[0] for line in text if line[:2] in ("~ ", "+ ")) == marks


def test_a_mark_of_another_day_is_not_borrowed():
    """A day without any known money shows no `+`, and none is explained."""
    text = lines(found(summary("a", start_ns=NOON + DAY), summary("b", **NONE)))
    assert headings(text) == {"TODAY 21 Nov": "1 session · $0.50", "YESTERDAY 20 Nov": "1 session"}
    assert not [line for line in text if line.startswith("+")]


# --- as a tree


def tree(*sessions, **fields):
    """The lines of the tree, from the time to the model and without blank ones."""
    return [re.sub(r"\s+m\b.*", "", line) for line in lines(found(*sessions, **fields), tree=True) if line]


def test_forks_stand_below_their_parents():
    """The newest tree first, and in it the newest fork; lines lead from a fork up to its parent."""
    noon = [summary(f"s{hour}", start_ns=NOON + hour * 3600 * SECOND, duration_ms=1000) for hour in range(6)]
    forks = {1: "s0", 2: "s0", 3: "s1", 4: "s3"}
    sessions = [replace(one, parent=forks.get(hour, "")) for hour, one in enumerate(noon)]
    assert tree(*reversed(sessions))[1:] == [
        "17:00        ✔  1.0 s",
        "12:00        ✔  1.0 s",
        "├ 14:00      ✔  1.0 s",
        "└ 13:00      ✔  1.0 s",
        "  └ 15:00    ✔  1.0 s",
        "    └ 16:00  ✔  1.0 s",
    ]


def test_lines_of_generations_go_on_beside_later_siblings():
    """`│` stands where a fork of an earlier generation is still to come."""
    names = [("a", ""), ("b", "a"), ("c", "b"), ("d", "a")]
    listed = [summary(name, start_ns=NOON - n * SECOND * 60, parent=parent) for n, (name, parent) in enumerate(names)]
    assert [line.split("  ✔")[0].rstrip() for line in tree(*listed)[1:]] == ["12:00", "├ 11:59", "│ └ 11:58", "└ 11:57"]


def test_a_parent_of_another_day_is_named():
    """Days keep their sums: the parent stands in its own, and is named with its time above its forks."""
    parent = summary("p", start_ns=NOON, prompt="begin here")
    forks = [summary(name, start_ns=NOON + DAY, parent="p") for name in ("f", "g")]
    text = tree(*forks, parent)
    assert [line.split("  ")[0] for line in text] == [
        "TODAY 21 Nov", "p · 20 Nov 12:00 · “begin here”", "├ 12:00", "└ 12:00", "YESTERDAY 20 Nov", "12:00",
    ]  # fmt: skip


def test_a_parent_that_is_not_listed_is_named():
    """Beyond the limit with what is known of it, outside of the window by its id alone."""
    fork, parent = summary("f", parent="p"), summary("p", start_ns=NOON - 60 * SECOND)
    assert tree(fork, left_out=(parent,))[1] == "p · 20 Nov 11:59"
    assert tree(fork)[1] == "p · not in this list"
    assert tree(summary("f", parent=EVIL))[1].endswith(" · not in this list")
    assert not CONTROLS.search("".join(tree(summary("f", parent=EVIL))))


def test_deep_forks_leave_room_for_their_line():
    """Of many generations only the first are drawn; what is further down stands below a sign of its own."""
    chain = [summary(f"s{n}", start_ns=NOON - n * SECOND, parent=f"s{n - 1}" if n else "") for n in range(40)]
    text = tree(*chain)
    generations = [line.partition("11:")[0].lstrip() for line in text[2:]]
    assert [generations.count(sign) for sign in ("└ ", "⋮ ")] == [8, 31]
    assert text[-1].startswith(f"{'  ' * 7}⋮ ")
    narrow = [line for line in lines(found(*chain), tree=True, width=42) if "11:" in line]
    assert [line.count("⋮ ") for line in narrow] == [0, 0, 0] + [1] * 36
    assert len(text) == 41


@pytest.mark.parametrize("width", [42, 80, 160])
def test_a_tree_has_ids_that_can_be_typed(width):
    """As much of their ends as tells them apart: what is resumed, compared or replayed is named by them."""
    ids = ["20261122T112030Z-3739748b", "01302f64-1ea4-4830-97be-8a3d8ad0e724", "20261122T112031Z-9739748b", "short"]
    text = lines(
        found(*(summary(name, parent=ids[0] if n == 1 else "") for n, name in enumerate(ids))), tree=True, width=width
    )
    shown = [line.split()[-1] for line in text if "12:00" in line]
    assert shown == ["3739748b", "8ad0e724", "9739748b", "short"]
    assert [matching(short, ids) for short in shown] == [[name] for name in ids]


def test_an_empty_list_says_so():
    """No table, no columns to hide; damage is told all the same."""
    problem = Problem(path="a.jsonl", line=1, offset=0, kind="not_json", detail="?")
    assert lines(found(), width=40) == ["No sessions · all time"]
    assert lines(found(problem_count=1, problems=(problem,)), width=40)[1:] == [
        "1 damaged piece skipped (a.jsonl:1): `sessionlog check` shows it"
    ]


def test_a_limit_says_how_many_more():
    """Both with and without a line left."""
    assert "7 more sessions (--limit)" in lines(week_sessions(limit=3))
    assert "10 more sessions (--limit)" in lines(week_sessions(limit=0))


# --- widths and hostile names


TEXTS = st.text(max_size=60)
SUMMARIES = st.builds(
    summary,
    TEXTS,
    start_ns=st.none() | st.integers(NOON - 9 * DAY, NOON + DAY),
    status=st.sampled_from(["success", "running", "unfinished", "error"]) | TEXTS,
    models=st.lists(TEXTS, max_size=3).map(tuple),
    project=TEXTS,
    prompt=TEXTS,
    error=TEXTS,
    duration_ms=st.integers(0, 10**12),
    requests=st.integers(0, 10**9),
    input_tokens=st.integers(0, 2**63),
    known_nano=st.none() | st.integers(0, 2**63 - 1),
    cost_is_partial=st.booleans(),
    parent=TEXTS,
)


@examples(100)
@given(st.lists(SUMMARIES, min_size=1, max_size=4), st.integers(40, 200), st.booleans())
def test_no_session_takes_more_than_a_line(sessions, width, tree):
    """Every session is one line that fits, whatever it is called; nothing of it acts on the terminal."""
    table = [t for t in show(found(*sessions), width=width, tz="UTC", now=NOW, tree=tree) if t.no_wrap]
    assert len(table) == len(sessions)
    assert max(cell_len(line.plain) for line in table) <= width
    assert not CONTROLS.search("".join(line.plain for line in table))


def test_wide_shows_every_column():
    """Nothing is hidden and nothing is cut but the prompt."""
    text = lines(week_sessions(), width=40, wide=True)
    assert any("failed-call-and-a-damaged-line" in line for line in text)
    assert not [line for line in text if line.startswith("hidden columns")]


def test_names_from_a_log_cannot_act():
    """No escape in the table, no formula in CSV, no cell end in Markdown."""
    evil = summary(EVIL, models=(EVIL,), prompt=EVIL, error=EVIL, status="error", project=EVIL, path=EVIL)
    formula = summary("=1+1", prompt="@SUM(A1)")
    assert not CONTROLS.search("".join(lines(found(evil), wide=True)))
    rows = list(csv.DictReader(io.StringIO(render_csv(found(formula, evil)))))
    assert (rows[0]["session"], rows[0]["prompt"]) == ("'=1+1", "'@SUM(A1)")
    assert len(rows) == 2
    text = markdown(found(evil), tz="UTC", now=NOW)
    assert not CONTROLS.search(text)
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()}) == 1


def test_a_cancelled_session_is_no_failure():
    """Ctrl-C has a mark of its own: nobody has to look for what went wrong."""
    assert MARKS["cancelled"][0] not in {MARKS["success"][0], "✘"}
