"""`sessionlog report`: a page in a file or on stdout, which never replaces what is not ours."""

import re
import shutil
from urllib.parse import unquote

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


def test_a_link_to_nothing_stays(cli, tmp_path):
    """It is the user's own, as a file is: what it names may be on a disk that is away."""
    path = tmp_path / "link.html"
    path.symlink_to(tmp_path / "away" / "page.html")
    done = cli("report", str(DATA / "week"), "--html", str(path), *NOW)
    assert (done.code, path.is_symlink()) == (2, True)
    assert "is not a page of sessionlog" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name the page with --html FILE"),
        (
            ("--html", "/nowhere/x.html"),
            "/nowhere/x.html: no such file or directory; make the folder first",
        ),
        (("--html", "-", "--pages", "p"), "--pages needs a report in a file"),
        (("--html", "x.html", "--pages", "/dev/null/p"), "/dev/null/p: "),
    ],
)
def test_wrong_use_is_one_sentence(cli, arguments, message):
    """Without a page, where it cannot be written, and where no link can lead from."""
    done = cli("report", str(DATA / "week"), *arguments, *NOW)
    assert done.code == 2
    assert message in done.err


def links_of(report):
    """The files that a report links to."""
    addresses = re.findall(r'<a href="([^#"]+)">', report.read_text("utf-8"))
    return [(report.parent / unquote(address)).resolve() for address in addresses]


def test_the_listed_sessions_have_pages_that_are_linked(cli, tmp_path):
    """In a folder of any name, as many as the report lists; written again, they are replaced."""
    report, folder = tmp_path / "usage.html", tmp_path / "a & b" / "100% <x>"
    for _ in range(2):
        done = cli("report", str(DATA / "week"), "--html", str(report), "--pages", str(folder), "--limit", "3", *NOW)
        assert done.code == 0, done.err
        assert f"wrote 3 of 3 sessions' pages to {folder}" in done.err
    assert len(links_of(report)) == 3
    assert sorted(links_of(report)) == sorted(folder.iterdir())
    assert all("<main" in path.read_text("utf-8") for path in folder.iterdir())
    assert (folder.stat().st_mode | 0o700) == folder.stat().st_mode


def test_a_session_without_its_log_has_no_page(cli, tmp_path, monkeypatch):
    """It is known from the ledger alone; the report shows its command, and a note has the reason."""
    logs, report = tmp_path / "logs", tmp_path / "usage.html"
    shutil.copytree(DATA / "week", logs)
    monkeypatch.setenv("SESSIONLOG_DIR", str(logs))
    ran = ("report", "--html", str(report), "--pages", str(tmp_path / "pages"), *NOW)
    assert cli(*ran).code == 0
    whole = len(links_of(report))
    gone = links_of(report)[0].stem
    [log] = [path for path in logs.rglob("*.jsonl") if path.stem == gone]
    log.unlink()
    done = cli(*ran)
    assert done.code == 0
    assert f"wrote {whole - 1} of {whole} sessions' pages" in done.err
    assert "no page: " in done.err
    assert len(links_of(report)) == whole - 1
    assert f"<code>sessionlog replay {gone}</code>" in report.read_text("utf-8")


def test_pages_never_replace_what_is_not_ours(cli, tmp_path):
    """Neither is the report written then."""
    report, folder = tmp_path / "usage.html", tmp_path / "pages"
    ran = ("report", str(DATA / "week"), "--html", str(report), "--pages", str(folder), *NOW)
    assert cli(*ran).code == 0
    mine = links_of(report)[0]
    mine.write_text("mine")
    report.unlink()
    assert cli(*ran).code == 2
    assert mine.read_text() == "mine"
    assert not report.exists()


def test_sessions_of_several_agents_with_one_id_have_a_page_each(cli, tmp_path):
    """The later one is named for its agent, too."""
    report, logs, folder = tmp_path / "usage.html", tmp_path / "logs", tmp_path / "pages"
    foreign = min((DATA.parent / "sources/claude-code/endings").rglob("*.jsonl"))
    (logs / "other").mkdir(parents=True)
    shutil.copy(foreign, logs / "other" / foreign.name)
    shutil.copy(DATA / "week" / "killed.jsonl", logs / foreign.name)
    done = cli("report", str(logs), "--html", str(report), "--pages", str(folder), "--since", "2020-01-01..", *NOW)
    assert done.code == 0, done.err
    assert {path.name.removesuffix(f"{foreign.stem}.html") for path in links_of(report)} in (
        {"", "native-"},
        {"", "claude-code-"},
    )
    assert len({path.read_text("utf-8") for path in links_of(report)}) == 2


def test_sessions_whose_ids_are_alike_have_a_page_each(cli, tmp_path):
    """Ids that differ only in what a file's name cannot have, or in case, which many disks do not keep apart."""
    report, logs, folder = tmp_path / "usage.html", tmp_path / "logs", tmp_path / "pages"
    logs.mkdir()
    ids = ["a-b", "a:b", "a?b", "a*b", 'a"b', "a b", "A-B", "a-B", "2-native-a-b", "a" * 101, "a" * 102]
    for one in ids:
        shutil.copy(DATA / "week" / "killed.jsonl", logs / f"{one}.jsonl")
    for _ in range(2):
        done = cli("report", str(logs), "--html", str(report), "--pages", str(folder), "--since", "2020-01-01..", *NOW)
        assert f"wrote {len(ids)} of {len(ids)} sessions' pages" in done.err
        assert len({path.name.casefold() for path in folder.iterdir()}) == len(ids)
        assert sorted(links_of(report)) == sorted(folder.iterdir())
    assert len({path.read_text("utf-8") for path in folder.iterdir()}) == len(ids)
