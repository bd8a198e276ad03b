"""Remote logs: the same numbers as local ones, few requests, and faults that lose nothing and are named."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fsspec.spec import AbstractFileSystem

from sessionlog import aggregate_usage, files
from sessionlog.cli import main
from sessionlog.errors import LogNotReadable, MissingExtra
from sessionlog.files import remote_errors
from sessionlog.files.remote import opened
from sessionlog.files.urls import without_password
from sessionlog.sources.check import check_sources
from tests.files.faulty_store import FaultyStore
from tests.sources.homes import all_cases, build_home

ROOT = "faulty://bucket/team"


@pytest.fixture(autouse=True)
def store(monkeypatch):
    """An empty store whose passing errors are not waited for."""
    FaultyStore.reset()
    monkeypatch.setattr(remote_errors, "FIRST_WAIT", 0.0)
    return FaultyStore


def upload(folder, root="/bucket/team"):
    """Copy a folder into the store."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                FaultyStore.put(f"{root}/{os.path.relpath(path, folder)}", file.read())


def response(number, tokens):
    """A native response of so many tokens."""
    usage = {"input": tokens, "output": 1}
    data = {"attempt": {}, "model": "m", "usage": usage}
    return {
        "session_id": "s",
        "seq": number,
        "type": "llm.response",
        "ts": f"2026-11-20T10:{number // 60:02}:{number % 60:02}Z",
        "data": data,
    }


def log_of(*tokens, padding=0):
    """A native log with a response per number."""
    start = {"session_id": "s", "seq": 0, "type": "session.start", "ts": "2026-11-20T09:59:00Z", "data": {"v": 1}}
    rows = [start, *(response(number, one) for number, one in enumerate(tokens, 1))]
    if padding:
        text = {"session_id": "s", "seq": 0, "type": "note", "ts": "2026-11-20T09:59:01Z", "data": {"text": "x" * 1000}}
        rows[1:1] = [text] * (padding // 1100)
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def numbers(report, root):
    """A report as text, without the name of its place."""
    return json.dumps(report.to_dict(), sort_keys=True, default=str).replace(str(root), "ROOT")


def gets():
    """The requests for bytes so far, which are forgotten then."""
    found = [one for one in FaultyStore.requests if one[0] == "get"]
    FaultyStore.requests.clear()
    return found


def total(ledger, place=ROOT, **options):
    """Input tokens of a place by its ledger, the first problems, and how many sessions are gone."""
    report = aggregate_usage(place, ledger=ledger, **options)
    return report.totals.input_tokens, list(map(str, report.problems)), report.archived_sessions


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """The homes of a case per agent; of all cases in the slow tier."""
    return tmp_path_factory.mktemp("homes")


def _first_cases():
    return list({case.split("/")[0]: case for case in all_cases()}.values())


def _equal(case, homes):
    home = build_home(case, homes / case)
    upload(home)
    here, there = aggregate_usage(str(home)), aggregate_usage(ROOT)
    assert numbers(there, ROOT) == numbers(here, home)
    env = {}
    with opened([ROOT]):
        found = [(source, one.events, one.damaged) for source, one in check_sources([ROOT], env)]
    assert found == [(source, one.events, one.damaged) for source, one in check_sources([str(home)], env)]


@pytest.mark.parametrize("case", _first_cases())
def test_each_agent_remote_equals_local(case, homes):
    """A report over a store's copy of a home, and a check of it, are those of the home."""
    _equal(case, homes)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in all_cases() if case not in _first_cases()])
def test_every_case_remote_equals_local(case, homes):
    """The same for all cases of all agents."""
    _equal(case, homes)


@pytest.mark.slow
@pytest.mark.skipif("SESSIONLOG_REAL" not in os.environ, reason="$SESSIONLOG_REAL names no homes of real clients")
def test_logs_of_real_clients_remote_equal_local():
    """The same for the homes that real clients left."""
    for home in sorted(path for path in Path(os.environ["SESSIONLOG_REAL"]).iterdir() if path.is_dir()):
        FaultyStore.reset()
        upload(home)
        assert numbers(aggregate_usage(ROOT), ROOT) == numbers(aggregate_usage(str(home)), home), home.name


def test_an_unchanged_place_is_only_listed(tmp_path):
    """The second report makes one request, also where files are no logs."""
    for number in range(5):
        FaultyStore.put(f"/bucket/team/a{number}.jsonl", log_of(100 + number))
    FaultyStore.put("/bucket/team/settings.json", b'{"colour": 1}')
    ledger = str(tmp_path / "ledger.sqlite")
    assert total(ledger)[0] == 510
    assert len(gets()) == 6
    assert total(ledger)[0] == 510
    assert FaultyStore.requests == [("find", "/bucket/team")]


def test_a_copied_object_with_the_same_version_is_not_read_again(tmp_path):
    """An object whose ETag is the same is the same, whenever it was written."""
    FaultyStore.put("/bucket/team/a.jsonl", log_of(100))
    ledger = str(tmp_path / "ledger.sqlite")
    total(ledger)
    gets()
    FaultyStore().pipe("/bucket/team/a.jsonl", log_of(100))
    assert total(ledger)[0] == 100
    assert gets() == []


def test_of_a_grown_object_only_samples_and_the_tail_are_fetched(tmp_path, monkeypatch):
    """A log of two megabytes that grows by a line costs its first block, samples of 4 KiB, and the last block."""
    monkeypatch.setattr("sessionlog.ledger.scanning.GROWS_NS", 1 << 62)
    monkeypatch.setattr("sessionlog.files.remote_reader.BLOCK", 128 << 10)
    ledger = str(tmp_path / "ledger.sqlite")
    FaultyStore.put("/bucket/team/a.jsonl", log_of(100, padding=2 << 20))
    assert total(ledger)[0] == 100
    whole = sum((end or 256 << 10) - (start or 0) for _, _, start, end in gets())
    FaultyStore.put("/bucket/team/a.jsonl", log_of(100, 50, padding=2 << 20))
    assert total(ledger)[0] == 150
    grown = gets()
    assert sum((end or 256 << 10) - (start or 0) for _, _, start, end in grown) < whole / 3
    assert len(grown) < 2 * 16 + 8


def test_an_object_that_was_replaced_is_read_whole(tmp_path, monkeypatch):
    """A longer object with another beginning is no grown one: its numbers replace the old ones."""
    monkeypatch.setattr("sessionlog.ledger.scanning.GROWS_NS", 1 << 62)
    ledger = str(tmp_path / "ledger.sqlite")
    FaultyStore.put("/bucket/team/a.jsonl", log_of(100, padding=1 << 20))
    total(ledger)
    FaultyStore.put("/bucket/team/a.jsonl", log_of(7, 8, padding=2 << 20))
    assert total(ledger)[0] == 15


def test_a_vanished_object_is_gone_like_a_deleted_log(tmp_path):
    """Its records stay and are counted as archived; `live` leaves them out."""
    ledger = str(tmp_path / "ledger.sqlite")
    FaultyStore.put("/bucket/team/a.jsonl", log_of(100))
    FaultyStore.put("/bucket/team/b.jsonl", log_of(1))
    total(ledger)
    FaultyStore().rm("/bucket/team/b.jsonl")
    assert total(ledger) == (101, [], 1)
    assert total(ledger, live=True)[0] == 100


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("get", OSError("SlowDown: 503")),
        ("get", ConnectionResetError("reset")),
        ("find", TimeoutError()),
        ("cut", None),
    ],
)
def test_passing_errors_are_tried_again(tmp_path, fault, error):
    """A throttled, cut or late answer is asked for again, and the numbers are the same."""
    FaultyStore.put("/bucket/team/a.jsonl", log_of(100))
    FaultyStore.faults.update({fault: 3, (fault, "error"): error})
    assert total(str(tmp_path / "ledger.sqlite")) == (100, [], 0)


@pytest.mark.parametrize("fault", ["get", "cut"])
def test_what_stays_broken_is_named_and_read_next_time(tmp_path, fault):
    """After five tries the object is a problem with its URL, nothing of it counts, and nothing else is lost."""
    ledger = str(tmp_path / "ledger.sqlite")
    FaultyStore.put("/bucket/team/a.jsonl", log_of(100))
    total(ledger)
    FaultyStore.put("/bucket/team/b.jsonl", log_of(1))
    FaultyStore.faults.update({fault: 99, (fault, "error"): OSError("SlowDown: 503")})
    found, problems, _ = total(ledger)
    assert found == 100
    assert len(problems) == 1
    assert problems[0].startswith(f"{ROOT}/b.jsonl")
    FaultyStore.faults.clear()
    assert total(ledger) == (101, [], 0)


@pytest.mark.parametrize("change", ["change", "vanish"])
def test_an_object_that_changes_while_it_is_read_is_a_problem(tmp_path, change):
    """Blocks of two versions are never mixed: the object is named, and read at the next report."""
    path = "/bucket/team/a.jsonl"
    ledger = str(tmp_path / "ledger.sqlite")
    FaultyStore.put(path, log_of(100, padding=1 << 20))
    new = log_of(7, padding=1 << 20)
    FaultyStore.faults["after", path] = {
        "change": lambda: FaultyStore.put(path, new),
        "vanish": lambda: FaultyStore().rm(path),
    }[change]
    found, problems, _ = total(ledger)
    assert found == 0
    assert [problem.startswith(f"{ROOT}/a.jsonl") for problem in problems] == [True]
    assert ("it changed while it was read" if change == "change" else "vanished") in problems[0]
    FaultyStore.put(path, new)
    assert total(ledger) == (7, [], 0)


def test_a_failed_listing_ends_the_report_and_forgets_nothing(tmp_path):
    """Without the right to list, the report is an error with the URL, and no log is taken for gone."""
    ledger = str(tmp_path / "ledger.sqlite")
    FaultyStore.put("/bucket/team/a.jsonl", log_of(100))
    total(ledger)
    FaultyStore.faults.update({"find": 1, ("find", "error"): PermissionError("AccessDenied")})
    with pytest.raises(LogNotReadable, match=r"faulty://bucket/team: access denied; reading takes the rights"):
        total(ledger)
    assert total(ledger) == (100, [], 0)


def test_a_folder_of_a_server_that_cannot_be_listed_is_not_empty(tmp_path, monkeypatch):
    """The search of folders in fsspec leaves it out without a word: no log in it is taken for gone."""
    hidden = []

    def ls(store, path, real=FaultyStore.ls, **options):
        if path in hidden:
            raise PermissionError("AccessDenied")
        return real(store, path, **options)

    monkeypatch.setattr(FaultyStore, "find", AbstractFileSystem.find)
    monkeypatch.setattr(FaultyStore, "ls", ls)
    ledger = str(tmp_path / "ledger.sqlite")
    FaultyStore.put("/bucket/team/a.jsonl", log_of(100))
    FaultyStore.put("/bucket/team/deep/b.jsonl", log_of(1))
    assert total(ledger) == total(ledger) == (101, [], 0)
    hidden.append("/bucket/team/deep")
    with pytest.raises(LogNotReadable, match="access denied"):
        total(ledger)
    hidden.clear()
    assert total(ledger) == (101, [], 0)


def test_a_url_outside_the_named_places_is_not_followed():
    """A URL that stands in a log names nothing: only what the user named is opened."""
    FaultyStore.put("/bucket/team/a.jsonl", log_of(1))
    FaultyStore.put("/other/secret.jsonl", log_of(1))
    assert files.stat_path(f"{ROOT}/a.jsonl") is None
    with opened([ROOT]):
        assert files.stat_path(f"{ROOT}/a.jsonl") is not None
        with pytest.raises(LogNotReadable):
            files.open_log("faulty://other/secret.jsonl")
    assert files.stat_path(f"{ROOT}/a.jsonl") is None


def test_a_place_that_is_open_is_not_listed_again():
    """A place inside an open one uses its listing."""
    FaultyStore.put("/bucket/team/a.jsonl", log_of(1))
    with opened([ROOT]), opened([f"{ROOT}/a.jsonl"]):
        assert len([one for one in FaultyStore.requests if one[0] == "find"]) == 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ada:pw@host/logs?token=abc", "https://host/logs"),
        ("s3://AKIA:se/cr+et@bucket/team/", "s3://bucket/team"),
        ("s3://bucket/a#1?.jsonl", "s3://bucket/a#1?.jsonl"),
        ("ssh://ada@host/logs", "ssh://ada@host/logs"),
        ("sftp://host:22/home/a@b", "sftp://host:22/home/a@b"),
        ("abfs://logs@account.dfs.core.windows.net/team", "abfs://logs@account.dfs.core.windows.net/team"),
    ],
)
def test_passwords_are_no_part_of_a_name(url, shown):
    """A URL is shown without password, key and parameters, but with what tells places apart."""
    assert without_password(url) == shown


def test_credentials_appear_nowhere(tmp_path, capsys, monkeypatch):
    """Neither the report, nor errors, nor the ledger have the password of a URL."""
    monkeypatch.setenv("SESSIONLOG_LEDGER", str(tmp_path / "ledger.sqlite"))
    FaultyStore.put("/bucket/team/a.jsonl", log_of(5) + b"{damage\n")
    secret = "faulty://ada:hunter2@bucket/team"
    monkeypatch.setattr(
        FaultyStore,
        "_strip_protocol",
        classmethod(lambda _, path: "/bucket/team" if "@" in str(path) else MemoryPath(path)),
    )
    for command in ("usage", "check", "sessions"):
        main([command, secret])
    FaultyStore.faults.update({"find": 99, ("find", "error"): OSError("cannot reach ada:hunter2@bucket")})
    assert main(["usage", secret]) == 3
    shown = "".join(capsys.readouterr())
    assert "faulty://bucket/team" in shown
    assert "hunter2" not in shown
    assert all(b"hunter2" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def MemoryPath(path):
    """The path of a URL without a user."""
    return "/" + str(path).removeprefix("faulty://").strip("/") if str(path).strip("/") else ""


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["replay", f"{ROOT}/a.jsonl", "--plain"], 0, "5 in · 1 out"),
        (["context", f"{ROOT}/a.jsonl"], 0, "request 1 of 1"),
        (["diff", f"{ROOT}/a.jsonl", f"{ROOT}/a.jsonl"], 0, ""),
        (["scrub", ROOT], 0, ""),
        (["check", "--repair", ROOT], 0, ""),
        (["sessions", ROOT], 0, ""),
        (["replay", "--follow", f"{ROOT}/a.jsonl"], 2, "--follow works on logs of this machine"),
        (["usage", "faulty://bucket/nothing"], 3, "faulty://bucket/nothing: no such file or folder"),
        (["usage", "nosuch://bucket"], 3, "nosuch://bucket"),
        (["usage", "oci://bucket"], 3, "pip install ocifs"),
    ],
)
def test_every_command_takes_urls(capsys, tmp_path, monkeypatch, arguments, code, text):
    """Commands read remote logs as local ones, and refuse in a sentence what cannot be done with them."""
    monkeypatch.setenv("SESSIONLOG_LEDGER", str(tmp_path / "ledger.sqlite"))
    FaultyStore.put("/bucket/team/a.jsonl", log_of(5))
    found = main(arguments)
    shown = "".join(capsys.readouterr())
    assert text in shown
    assert "Traceback" not in shown
    assert found == code


def test_without_fsspec_a_sentence_names_the_packages(monkeypatch):
    """The missing extra and the protocol's package stand in the message."""
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sessionlog\[remote\]' s3fs"), opened(["s3://bucket/team"]):
        pass


def test_sources_ask_the_seam_about_paths():
    """Sources and readers ask `files` about paths, which knows URLs, and never the system itself."""
    asked = re.compile(
        r"os\.(?:path\.(?:is(?:dir|file)|l?exists|abspath|realpath|normpath)|listdir|walk|scandir|l?stat)\(|[^_]glob\("
    )
    local = {"crush.py", "find_places.py", "discover.py", "walk.py", "databases.py", "registry.py", "scrub.py"}
    local |= {"opencode.py", "protocol.py"}  # they name the folders of this machine in which a log could be new
    root = Path(files.__file__).parents[1]
    paths = [*(root / "sources").rglob("*.py"), *(root / "reader").rglob("*.py")]
    found = {path.name for path in paths if asked.search(path.read_text("utf-8"))}
    assert found <= local


def test_local_reports_do_not_load_fsspec(tmp_path):
    """Neither importing the package nor a report over a local folder loads fsspec or what reads remote logs."""
    (tmp_path / "a.jsonl").write_bytes(log_of(1))
    code = "import sys, sessionlog; sessionlog.aggregate_usage(sys.argv[1]); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert not {"fsspec", "sessionlog.files.remote"} & set(run.stdout.split())
