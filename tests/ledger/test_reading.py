"""A ledger that is opened for queries only: nothing is written, and it tells whether there is news."""

import os
import sqlite3

import pytest

from sessionlog.errors import InvalidQuery, LedgerUnusable
from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.book import Book
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.refreshing import changed_logs
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


def has_news(home):
    """Whether anything has to be read, as a book without prices of its own sees it."""
    with open_ledger(home.ledger, write=False) as book:
        return changed_logs(book, home.env) != []


def test_a_book_for_queries_cannot_be_written_to(home):
    """It answers all the same."""
    with open_ledger(home.ledger, write=False) as book:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            book.connection.execute("DELETE FROM files")
        assert book.query("SELECT COUNT(*) FROM records", {}) == [(1,)]
        assert (book.problem_count, book.problems, book.priced_from) == (0, [], PriceBook.load().version)


def test_all_queries_of_a_question_see_the_same(home):
    """Whatever is written meanwhile: it is one transaction."""

    def question(book):
        before = book.query("SELECT COUNT(*) FROM files", {})
        change(home, "UPDATE files SET id = id + 100")
        change(home, "DELETE FROM files")
        return before == book.query("SELECT COUNT(*) FROM files", {})

    assert ask(Where(ledger=home.ledger, env=home.env), question)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM meta WHERE name = 'snapshot'",
        "UPDATE meta SET value = 'yes' WHERE name = 'own_prices'",
        "DELETE FROM meta WHERE name = 'own_prices'",
        "UPDATE files SET missing = 3",
    ],
)
def test_what_is_doubtful_is_news(home, sql):
    """Other prices, a log out of reach, a sync that stored nothing."""
    assert not has_news(home)
    change(home, sql)
    assert has_news(home)


@pytest.mark.parametrize("sql", ["UPDATE files SET beside = 'zz:odd'", "DROP TABLE folders"])
def test_a_damaged_ledger_costs_no_report(home, sql):
    """All logs are read into memory, and a note says so."""
    change(home, sql)
    question = lambda book: (book.query("SELECT COUNT(*) FROM records", {}), book.notes)  # noqa: E731
    found, [note] = ask(Where(ledger=home.ledger, env=home.env), question)
    assert found == [(1,)]
    assert "`sessionlog ledger verify` shows more" in note


@pytest.mark.parametrize("sql", ["PRAGMA application_id = 7", "PRAGMA user_version = 99"])
def test_what_is_no_ledger_of_ours_is_refused(home, sql):
    """Another program's, and a newer version's."""
    change(home, sql)
    for write in (True, False):
        with pytest.raises(LedgerUnusable):
            open_ledger(home.ledger, write=write)


def test_a_ledger_that_others_may_change_is_refused(home):
    """Of the file and of its folder."""
    for path in (home.ledger, os.path.dirname(home.ledger)):
        mode = os.stat(path).st_mode
        os.chmod(path, 0o777)
        for write in (True, False):
            with pytest.raises(LedgerUnusable, match="others may write"):
                open_ledger(home.ledger, write=write)
        os.chmod(path, mode & 0o700)
    assert not has_news(home)


def test_no_ledger_is_made(tmp_path):
    """Asking for one leaves nothing behind."""
    with pytest.raises(LedgerUnusable, match="there is no ledger yet"):
        open_ledger(str(tmp_path / "none.sqlite"), write=False)
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
    assert not has_news(home)


def test_a_wrong_question_is_said_at_once(home):
    """What the asker did wrong is no reason to scan."""

    def question(book):
        raise InvalidQuery("no such column")

    with pytest.raises(InvalidQuery):
        ask(Where(ledger=home.ledger, env=home.env), question)


def test_a_mistake_of_a_question_comes_again(home):
    """It is tried once more in memory, where it is raised."""
    with pytest.raises(sqlite3.OperationalError, match="nothing"):
        ask(Where(ledger=home.ledger, env=home.env), lambda book: book.query("SELECT nothing", {}))


def test_problems_are_named_from_the_file(home):
    """What belongs to no log comes before."""
    change(
        home,
        """UPDATE files SET problems = 1,
        named = '[{"path": "x", "line": 3, "offset": 0, "kind": "not_json", "detail": "d", "length": 9}]'""",
    )
    with Book(None, sqlite3.connect(home.ledger)) as book:
        assert ([str(problem) for problem in book.problems], book.problem_count) == (["x:3 not_json d"], 1)
