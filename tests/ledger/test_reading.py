"""A ledger without news is asked without anything else; whatever is odd is left to the whole way."""

import os
import sqlite3

import pytest
from sessionlog.ledger.cached import ask_current

from sessionlog.errors import InvalidQuery
from sessionlog.ledger.book import Book
from sessionlog.ledger.freshness import open_current
from sessionlog.pricing.book import PriceBook
from tests.ledger.little_home import LittleHome
from tests.ledger.little_reports import of_ledger


@pytest.fixture
def home(tmp_path):
    """A home with a ledger that is up to date, at list prices."""
    home = LittleHome(tmp_path)
    home.append("s/n1.jsonl", [("answer", 1, 1)])
    of_ledger(home, PriceBook.load())
    return home


def change(home, sql):
    """Change something in the ledger behind its back."""
    connection = sqlite3.connect(home.ledger)
    connection.execute(sql)
    connection.commit()
    connection.close()


def test_a_question_is_answered(home):
    """By a book that cannot be written to."""

    def question(book):
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            book.connection.execute("DELETE FROM files")
        return book.query("SELECT COUNT(*) FROM records", {}), book.problem_count, book.problems, book.priced_from

    assert ask_current(home.ledger, home.env, question) == ([(1,)], 0, [], PriceBook.load().version)


def test_all_questions_see_the_same(home):
    """Whatever is written meanwhile: it is one transaction."""

    def question(book):
        before = book.query("SELECT COUNT(*) FROM files", {})
        change(home, "UPDATE files SET id = id + 100")
        change(home, "DELETE FROM files")
        return before == book.query("SELECT COUNT(*) FROM files", {})

    assert ask_current(home.ledger, home.env, question)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM meta WHERE name = 'snapshot'",
        "UPDATE meta SET value = 'yes' WHERE name = 'own_prices'",
        "DELETE FROM meta WHERE name = 'own_prices'",
        "UPDATE files SET missing = 3",
        "UPDATE files SET beside = 'zz:odd'",
        "DROP TABLE folders",
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 99",
    ],
)
def test_what_is_odd_is_declined(home, sql):
    """News, other prices, what is no ledger of ours."""
    change(home, sql)
    assert ask_current(home.ledger, home.env, lambda book: True) is None


def test_a_ledger_that_others_may_change_is_declined(home):
    """Of the file and of its folder."""
    for path in (home.ledger, os.path.dirname(home.ledger)):
        mode = os.stat(path).st_mode
        os.chmod(path, 0o777)
        assert open_current(home.ledger, home.env) is None
        os.chmod(path, mode & 0o700)
    assert ask_current(home.ledger, home.env, lambda book: True)


def test_no_ledger_is_made(tmp_path):
    """Asking for one leaves nothing behind."""
    assert open_current(str(tmp_path / "none.sqlite"), {}) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("letters", ["a?b", "a#b", "a%41b", "a b", "é"])
def test_no_letter_of_a_path_means_anything(tmp_path, letters):
    """SQLite opens a URI."""
    home = LittleHome(tmp_path)
    home.append("s/n1.jsonl", [("answer", 1, 1)])
    folder = tmp_path / letters
    folder.mkdir(mode=0o700)
    home.ledger = str(folder / "book.sqlite")
    of_ledger(home, PriceBook.load())
    assert ask_current(home.ledger, home.env, lambda book: True)


def test_a_wrong_question_is_said_at_once(home):
    """What the asker did wrong is no reason to scan."""

    def question(book):
        raise InvalidQuery("no such column")

    with pytest.raises(InvalidQuery):
        ask_current(home.ledger, home.env, question)


def test_a_mistake_of_a_question_leads_to_the_whole_way(home):
    """There it comes again."""
    assert ask_current(home.ledger, home.env, lambda book: book.query("SELECT nothing", {})) is None


def test_both_books_name_the_same_problems(home):
    """The one that writes adds what belongs to no log."""
    change(
        home,
        """UPDATE files SET problems = 1,
        named = '[{"path": "x", "line": 3, "offset": 0, "kind": "not_json", "detail": "d", "length": 9}]'""",
    )
    connection = sqlite3.connect(home.ledger)
    one, other = Book(connection), Book(PriceBook.load(), connection)
    assert [str(problem) for problem in one.problems] == ["x:3 not_json d"]
    assert (one.problems, one.problem_count) == (other.problems, other.problem_count)
    connection.close()
