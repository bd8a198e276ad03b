"""No surroundings of the user's own, an application that is built once, and logs that are scanned once for all reports."""

from functools import cache

import pytest
import typer

from sessionlog.cli import app
from sessionlog.ledger import ask as module


@pytest.fixture(scope="session", autouse=True)
def _one_application():
    """Keep typer from building the same commands thousands of times, which would be most of the time spent."""
    build = app.build_app

    @cache
    def command_of(names, **options):
        return typer.main.get_command(build(names, **options))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            app, "build_app", lambda names=tuple(app.COMMANDS), **options: command_of(tuple(names), **options)
        )
        yield


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch, tmp_path):
    """No configuration, no pager, no logs of the user's own; a wide terminal with colours."""
    for name in ("NO_COLOR", "FORCE_COLOR", "SESSIONLOG_TZ"):
        monkeypatch.delenv(name, raising=False)
    settings = {
        "HOME": tmp_path / "home", "XDG_CONFIG_HOME": tmp_path / "config", "XDG_STATE_HOME": tmp_path / "state",
        "XDG_DATA_HOME": tmp_path / "data", "SESSIONLOG_DIR": tmp_path / "own", "SESSIONLOG_CONFIG": tmp_path / "none.toml",
        "PAGER": "", "TERM": "xterm-256color", "COLUMNS": "120", "TZ": "UTC",
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))


@pytest.fixture
def scanned_once(monkeypatch):
    """Scan logs for the first report of a test only, and give the others copies of its book: scans would be all alike.

    What cannot be read is tried again by each, and so is what `replay`, `context` and `check` read in their own ways.
    """
    books = {}
    load = module.load_book

    def load_or_copy(paths, prices, **how):
        key = tuple(paths), prices and prices.fingerprint
        if key not in books:
            books[key] = load(paths, prices, **how)
        return books[key].copy()

    monkeypatch.setattr(module, "load_book", load_or_copy)
    yield
    for book in books.values():
        book.close()
