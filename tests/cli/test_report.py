"""`sessionlog report`: a page in a file or on stdout, which never replaces what is not ours."""

import pytest

from tests.analytics.week import DATA

NOW = ["--now", "2026-11-21T12:00:00Z", "--tz", "UTC"]


def test_it_writes_a_page(cli, tmp_path):
    """A whole one, for the user alone; its size is a note, and writing it again replaces it."""
    path = tmp_path / "usage.html"
    for _ in range(2):
        done = cli("report", str(DATA / "week"), "--html", str(path), *NOW)
        assert (done.code, done.out) == (0, "")
        assert f"wrote {path}" in done.err
    assert path.read_text().endswith("</html>\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert cli("report", str(DATA / "week"), "--html", "-", *NOW).out.startswith("<!doctype html>")


def test_what_is_not_ours_stays(cli, tmp_path):
    """Unless it is asked for; a folder is never replaced."""
    path = tmp_path / "mine.html"
    path.write_text("mine")
    done = cli("report", str(DATA / "week"), "--html", str(path), *NOW)
    assert done.code == 2
    assert "is not a page of sessionlog: choose another name, or replace it with --force" in done.err
    assert path.read_text() == "mine"
    assert cli("report", str(DATA / "week"), "--html", str(path), "--force", *NOW).code == 0
    assert cli("report", str(DATA / "week"), "--html", str(tmp_path), *NOW).code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((), "name the page with --html FILE"), (("--html", "/nowhere/x.html"), "/nowhere/x.html: ")],
)
def test_wrong_use_is_one_sentence(cli, arguments, message):
    """Without a page, and where it cannot be written."""
    done = cli("report", str(DATA / "week"), *arguments, *NOW)
    assert done.code == 2
    assert message in done.err
