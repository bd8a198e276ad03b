"""`sessionlog scrub`: exit code 1 and places for secrets, copies on request, and never a secret on the screen."""

import json

import pytest

TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def leaky(logs):
    """The little logs, and one with a token."""
    path = logs / "leaky.jsonl"
    line = {
        "session_id": "leaky",
        "seq": 0,
        "type": "session.start",
        "ts": "2026-11-21T10:00:00Z",
        "data": {"prompt": TOKEN},
    }
    path.write_text(json.dumps(line) + "\n")
    return path


def test_logs_without_secrets_exit_0(cli, logs):
    """One sentence with the number of files."""
    assert cli("scrub", logs) == (0, "3 files: no secret\n", "")


def test_p17_a_secret_is_named_by_kind_and_place(cli, logs, leaky):
    """Exit code 1, what it is, how many, where, and the next step; not the secret."""
    ran = cli("scrub", logs)
    assert (ran.code, ran.err) == (1, "")
    assert "4 files: 1 secret\n" in ran.out
    assert "github-token  GitHub: token" in ran.out
    assert f"{leaky}:1 github-token\n" in ran.out
    assert "--write DIR" in ran.out
    assert "a1B2" not in ran.out


def test_json_has_every_place(cli, logs, leaky):
    """The schema, the table's version, the rule, the line and the offset."""
    ran = cli("scrub", logs, "--json")
    assert (ran.code, ran.json["schema"], ran.json["secrets"]) == (1, "sessionlog.scrub/1", 1)
    [found] = [file for file in ran.json["files"] if file["findings"]]
    assert (found["path"], found["source"], found["counts"]) == (str(leaky), "native", {"github-token": 1})
    assert found["findings"][0]["rule"] == "github-token"
    assert found["findings"][0]["line"] == 1
    assert "a1B2" not in ran.out


def test_copies_are_written_elsewhere(cli, logs, leaky, tmp_path):
    """All files, the clean ones as they are; a second run refuses the same folder."""
    target = tmp_path / "clean"
    ran = cli("scrub", logs, "--write", target)
    assert ran.code == 1
    assert "4 files copied to" in ran.out
    assert TOKEN not in (target / "leaky.jsonl").read_text()
    assert TOKEN in leaky.read_text()
    again = cli("scrub", logs, "--write", target)
    assert (again.code, again.out) == (2, "")
    assert "holds files already; name a new folder" in again.err


def test_the_folder_of_the_logs_is_refused(cli, logs, leaky):
    """Copies among the originals would be logs that count twice."""
    ran = cli("scrub", logs, "--write", logs / "clean")
    assert ran.code == 2
    assert "which is only read; name a folder elsewhere" in ran.err
    assert not (logs / "clean").exists()


def test_a_file_that_cannot_be_searched_whole_exits_1(cli, tmp_path):
    """Nobody knows what is in it; it is named."""
    (tmp_path / "bad.jsonl.gz").write_bytes(b"\x1f\x8bnot gzip at all")
    ran = cli("scrub", tmp_path)
    assert ran.code == 1
    assert "✘" in ran.out


def test_a_missing_path_is_named(cli, tmp_path):
    """As for every command."""
    ran = cli("scrub", tmp_path / "nowhere")
    assert ran.code == 3
    assert "no such file or folder" in ran.err


def test_the_option_of_check_is_gone(cli, logs):
    """`check` says what is damaged, `scrub` what is secret."""
    assert cli("check", logs, "--secrets").code == 2
