"""`sessionlog archive`, and the replay of what it kept."""

import os
import shutil

import pytest

from tests.sources.homes import build_home

LATER = ("--now", "2026-12-31T12:00:00Z")


@pytest.fixture
def ours(home, logs, monkeypatch):
    """The three sessions, in our own place, written in November."""
    monkeypatch.setenv("SESSIONLOG_DIR", str(logs))
    for path in logs.iterdir():
        os.utime(path, (1_795_000_000, 1_795_000_000))
    return logs


def test_closed_logs_are_archived_and_said(cli, ours, home):
    """Then they are unchanged; nothing of them is touched."""
    before = {path: path.read_bytes() for path in ours.iterdir()}
    ran = cli("archive", *LATER)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("archived 3 logs · ~/.local/share/sessionlog/archive\n")
    assert ran.out.splitlines()[3].split()[:3] == ["native", "3", "3"]
    again = cli("archive", *LATER).out
    assert again == "archived 0 logs · ~/.local/share/sessionlog/archive\n\n3 logs unchanged since it was archived\n"
    assert {path: path.read_bytes() for path in ours.iterdir()} == before


@pytest.mark.parametrize("form", [[], ["--plain"], ["--json"], ["--full"]])
def test_a_deleted_session_is_replayed_from_the_archive(cli, ours, form):
    """By its id, the beginning of it, or its old path; stderr says where it comes from."""
    path = ours / "s-failed.jsonl"
    before = cli("replay", path, *form)
    assert cli("archive", *LATER).code == 0
    shutil.rmtree(ours)
    for target in ("s-failed", "s-fai", path):
        ran = cli("replay", target, *form)
        assert (ran.code, ran.out) == (0, before.out)
        assert ran.err == f"{path} is gone: this is from the archive, of 2026-12-31\n"


def test_a_live_session_goes_before_the_archive(cli, ours):
    """It may have gone on since."""
    cli("archive", *LATER)
    ran = cli("replay", "s-failed")
    assert (ran.code, ran.err) == (0, "")


def test_what_is_nowhere_is_said_as_before(cli, ours):
    """Whether there is an archive or not."""
    without = cli("replay", "nothing-of-the-kind")
    cli("archive", *LATER)
    assert cli("replay", "nothing-of-the-kind") == without
    assert without.code == 3


def test_several_matches_in_the_archive_are_named(cli, ours):
    """Exit code 2, as for live sessions."""
    cli("archive", *LATER)
    shutil.rmtree(ours)
    ran = cli("replay", "s-f")
    assert ran.code == 2
    assert "s-failed, s-first, s-free" in ran.err


def test_what_is_archived_cannot_be_followed(cli, ours):
    """It does not grow."""
    cli("archive", *LATER)
    shutil.rmtree(ours)
    ran = cli("replay", "s-failed", "--follow")
    assert (ran.code, "does not grow" in ran.err) == (2, True)


def test_nothing_is_left_of_a_replay(cli, ours, tmp_path, monkeypatch):
    """What was unpacked is gone when the replay ends."""
    cli("archive", *LATER)
    shutil.rmtree(ours)
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    assert cli("replay", "s-failed").code == 0
    assert list(shared.iterdir()) == []


def test_json_says_what_was_archived(cli, ours):
    """Every log with its sessions."""
    document = cli("archive", "--json", *LATER).json
    assert document["schema"] == "sessionlog.archive/1"
    assert (document["archived_logs"], document["unchanged_logs"], document["dry_run"]) == (3, 0, False)
    assert [one["sessions"] for one in document["archived"]] == [["s-failed"], ["s-first"], ["s-free"]]
    assert document["bytes"] == sum(path.stat().st_size for path in ours.iterdir())
    assert document["packed_bytes"] > 0


def test_a_dry_run_says_what_would_be_done(cli, ours, home):
    """And does not."""
    assert cli("archive", "--dry-run", *LATER).out.startswith("would archive 3 logs")
    assert not (home / ".local" / "share").exists()


@pytest.mark.parametrize(("age", "kept"), [("1d", 0), ("59h", 0), ("1h", 3), ("01h", 3), ("0d", 3), ("1mo", 0)])
def test_logs_in_use_are_left_for_later(cli, ours, age, kept):
    """Two hours old."""
    ran = cli("archive", "--older-than", age, "--now", "2026-11-18T13:06:40Z")
    assert ran.out.startswith(f"archived {kept} logs")
    assert (f"3 logs written to within {age}: left for later (--older-than)" in ran.out) == (not kept)


@pytest.mark.parametrize("age", ["20", "d", "-1d", "1y", "1.5d", "999999999d"])
def test_an_age_that_is_none_is_wrong_usage(cli, ours, age):
    """With the forms that there are."""
    ran = cli("archive", "--older-than", age)
    assert (ran.code, "is not an age such as 12h, 20d, 4w or 3mo" in ran.err) == (2, True)


def test_sources_are_chosen(cli, ours, tmp_path, home):
    """By id; one that does not exist is wrong usage."""
    build = build_home("claude-code/sub-agents", tmp_path / "other")
    shutil.copytree(build, home, dirs_exist_ok=True)
    assert {one["source"] for one in cli("archive", "--json", "--source", "claude-code", *LATER).json["archived"]} == {
        "claude-code"
    }
    assert cli("archive", "--source", "quill").code == 2


def test_a_log_that_cannot_be_kept_is_named(cli, ours, monkeypatch):
    """Exit code 3, and the others are kept."""
    from sessionlog.archive import writing

    contents_of = writing.contents_of

    def fails(seen, folder):
        if seen[0].path.endswith("s-first.jsonl"):
            raise OSError(5, "Input/output error\x1b[2J")
        return contents_of(seen, folder)

    monkeypatch.setattr(writing, "contents_of", fails)
    ran = cli("archive", *LATER)
    assert ran.code == 3
    assert ran.out.startswith("archived 2 logs")
    assert f"✘ {ours / 's-first.jsonl'}: input/output error\\x1b[2j" in ran.out


def test_an_archived_session_is_still_in_the_list(cli, ours):
    """With the path that it had, by which it can be replayed."""
    cli("sessions", *LATER)
    cli("archive", *LATER)
    shutil.rmtree(ours)
    [row] = [one for one in cli("sessions", "--json", *LATER).json["rows"] if one["session"] == "s-failed"]
    assert row["archived"]
    assert cli("replay", row["path"]).code == 0
