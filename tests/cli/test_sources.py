"""`sessionlog sources`, and an agent of another package in every command."""

import hashlib
import json
from importlib.metadata import EntryPoint

import pytest

from sessionlog.sources import registry
from tests.sources.plugin.scrolls import POINT, installed, row, story, write_scroll

NOW = ("--now", "2026-11-21T12:00:00Z", "--tz", "UTC")


@pytest.fixture
def scrolls(home):
    """Two scrolls in Scribe's place; Scribe is installed."""
    write_scroll(home / ".scribe" / "tale-one.scroll", *story(answers=2))
    write_scroll(home / ".scribe" / "tale-two.scroll", *story(answers=3, name="q", bye=None))
    with installed(POINT):
        yield home / ".scribe"


# --- sources


def test_nobody_has_logs(cli, home):
    """It says where was looked, and that is no error."""
    with installed():
        ran = cli("sources", *NOW)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"Sources · 0 of {len(registry.OURS)} agents have logs here\n")
    assert "  – claude-code" in ran.out
    assert "~/.claude/projects" in ran.out


def test_agents_with_logs_are_listed(cli, scrolls):
    """Files, sessions, requests, days, how long they stay, and what goes soon."""
    ran = cli("sources", *NOW, "--source", "scribe")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "Sources · 1 of 1 agents have logs here"
    assert lines[3].split() == [
        "scribe",
        "2",
        lines[3].split()[2],
        "kB",
        "2",
        "5",
        "2026-11-20",
        "2026-11-20",
        "10",
        "days",
    ]
    assert "  ✔ scribe  ~/.scribe" in lines
    assert any(line.startswith("! scribe deletes 2 logs within 7 days") for line in lines)


def test_every_form_has_every_agent(cli, scrolls):
    """JSON, CSV and Markdown."""
    document = cli("sources", *NOW, "--json").json
    ids = [one["source"] for one in document["rows"]]
    assert (document["schema"], ids[0], len(ids)) == ("sessionlog.sources/2", "scribe", len(registry.OURS) + 1)
    assert [line.split(",")[0] for line in cli("sources", *NOW, "--csv").out.splitlines()[1:]] == ids
    assert [line.split(" | ")[0] for line in cli("sources", *NOW, "--markdown").out.splitlines()[2:]] == [
        f"| {one}" for one in ids
    ]


@pytest.mark.parametrize("patterns", [["scribe,claude*"], ["scribe", "claude-code"], [" SCRIBE , claude-code,"]])
def test_agents_are_chosen_by_commas_and_patterns(cli, scrolls, patterns):
    """In one option or in several."""
    options = [word for pattern in patterns for word in ("--source", pattern)]
    found = cli("sources", "--json", *options).json["rows"]
    assert sorted(one["source"] for one in found) == ["claude-code", "scribe"]


@pytest.mark.parametrize("command", ["sources", "usage", "sessions"])
def test_an_agent_that_does_not_exist_is_wrong_usage(cli, scrolls, command):
    """Exit code 2, and those that exist."""
    ran = cli(command, "--source", "scribe,quill")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no source 'quill'; there are native, fizeau, claude-code" in ran.err
    assert "scribe" in ran.err


def test_a_broken_plug_in_breaks_no_report(cli, scrolls):
    """Every report goes on without it; `sources` names it."""
    with installed(POINT, EntryPoint("quill", "no_such_package_at_all:SOURCE", registry.GROUP)):
        assert cli("usage", "--json").json["totals"]["requests"] == 5
        assert len(cli("sessions", "--json").json["rows"]) == 2
        assert cli("check").code == 0
        ran = cli("sources", *NOW)
        assert ran.code == 0
        assert "✘ plug-in quill (no_such_package_at_all:SOURCE) unreadable ModuleNotFoundError" in ran.out
        assert cli("sources", "--json").json["problems"]["count"] == 1


def test_sources_that_cannot_be_read_are_named(cli, scrolls):
    """Beside those that can."""
    write_scroll(scrolls / "bad.scroll", *story(name="z"), b"broken\n")
    assert "✘ scribe: ~/.scribe/bad.scroll:8 not_json 6 bytes are not JSON" in cli("sources", *NOW).out


# --- a third-party agent in every command


def test_usage_and_sessions_count_it(cli, scrolls):
    """Beside all others, by source."""
    [one] = cli("usage", "--json", "--by", "source,provider,model").json["rows"]
    assert (one["source"], one["provider"], one["model"]) == ("scribe", "inkwell", "ink-2")
    assert (one["requests"], one["input_tokens"], one["output_tokens"], one["sessions"]) == (5, 50, 25, 2)
    found = {s["session"]: s for s in cli("sessions", "--json", *NOW).json["rows"]}
    assert {name: (s["source"], s["status"], s["project"], s["prompt"]) for name, s in found.items()} == {
        "tale-one": ("scribe", "success", "/w/novel", "Write a tale"),
        "tale-two": ("scribe", "unfinished", "/w/novel", "Write a tale"),
    }


def test_usage_takes_its_logs_by_path(cli, scrolls, tmp_path):
    """A folder, a file under any name."""
    (tmp_path / "moved").write_bytes((scrolls / "tale-one.scroll").read_bytes())
    assert cli("usage", "--json", scrolls).json["totals"]["requests"] == 5
    assert cli("usage", "--json", tmp_path / "moved").json["totals"]["requests"] == 2
    assert cli("usage", "--json", tmp_path / "moved", scrolls, scrolls).json["totals"]["requests"] == 5  # copies


def test_usage_is_narrowed_to_it(cli, scrolls, record, tmp_path):
    """By `--source`, with and without a path."""
    record(tmp_path / "logs", "s-ours")
    assert cli("usage", "--json", "--source", "scr*", tmp_path).json["totals"]["requests"] == 5
    assert cli("usage", "--json", "--source", "native", tmp_path).json["totals"]["requests"] == 1
    assert cli("usage", "--json", "--source", "claude-code", tmp_path).json["totals"]["requests"] == 0


@pytest.mark.parametrize("target", ["tale-one", "-one", "path"])
def test_it_can_be_replayed(cli, scrolls, target):
    """By id, by the end of one, by path."""
    ran = cli("replay", "--", scrolls / "tale-one.scroll" if target == "path" else target)
    assert (ran.code, ran.err) == (0, "")
    for words in ("Write a tale", "Once", "quill", "scratched"):
        assert words in ran.out


def test_its_replay_as_json_is_its_events(cli, scrolls):
    """One a line."""
    lines = cli("replay", "tale-one", "--json").out.splitlines()
    types = [json.loads(line)["type"] for line in lines]
    assert types[0] == "session.start"
    assert types.count("llm.response") == 2
    assert types[-1] == "session.end"


# --- check


def test_check_reads_it(cli, scrolls):
    """In its place and by path."""
    for arguments in ((), (scrolls,), (scrolls / "tale-one.scroll", scrolls / "tale-two.scroll")):
        ran = cli("check", *arguments)
        assert (ran.code, ran.out.endswith("2 logs, 18 events: no damage\n")) == (0, True), ran.out


def state(folder):
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_mode, hashlib.sha256(path.read_bytes()).digest())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("name", ["bad.scroll", "bad.jsonl", "bad"])
def test_a_repair_leaves_other_agents_logs_alone(cli, scrolls, tmp_path, name):
    """It refuses, names the owner, exits with 1, and changes no byte, wherever the log lies."""
    path = write_scroll(
        tmp_path / "copies" / name, *story(name="z"), b"broken\n", row("ask", "12:00:00"), b'{"scribe":"'
    )
    before = state(tmp_path)
    for form in ((), ("--json",)):
        ran = cli("check", path, "--repair", *form)
        assert ran.code == 1
        assert "--repair does not change logs of scribe" in ran.out
    cli("check", tmp_path, "--repair")
    assert state(tmp_path) == before


@pytest.mark.parametrize(
    "content",
    [
        b"hello\nworld\n",
        b'{"who":"knows"}\n{"role":"user","content":"x"}\nbroken\n',
        b'{"timestamp":"2026-11-20T10:00:00Z","type":"x","payload":{}}\nbroken\n',
        b'{"type":"x","sessionId":"s","ts":1}\nbroken\n{"type":"y","ts":2',
        b"SQLite format 3\x00" + b"\xff" * 200,
    ],
)
@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x"])
def test_a_repair_leaves_alone_what_nobody_knows(cli, home, tmp_path, name, content):
    """A file that was named by mistake is not taken apart."""
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / name).write_bytes(content)
    before = state(tmp_path)
    cli("check", "--repair", tmp_path / "odd" / name)
    cli("check", "--repair", tmp_path / "odd")
    assert state(tmp_path) == before
