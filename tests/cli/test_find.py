"""`sessionlog find`: what it prints, in which words, and with which exit code."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.search.transcripts import Home, answered, called, returned, said, session_id

NOW = ("--now", "2026-11-21T12:00:00Z", "--tz", "UTC")


@pytest.fixture
def story(home, monkeypatch):
    """A session that fails, edits a file and succeeds, and another one of another day."""
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    made = Home(home)
    made.write(
        1,
        said("make the retry budget configurable"),
        called("c1", "Bash", {"command": "pytest -q"}, 1),
        returned("c1", "ModuleNotFoundError: no module named budget", 2, failed=True),
        called(
            "c2",
            "Edit",
            {"file_path": "/src/api/app.py", "old_string": "import x\ny", "new_string": "import budget\ny"},
            3,
        ),
        returned("c2", "edited", 3),
        called("c3", "Bash", {"command": "pytest -q"}, 4),
        returned("c3", "3 passed", 4),
        answered("The retry_budget is in the config now.", 5),
    )
    made.write(
        2, said("explain app.py", 30), called("c4", "Read", {"file_path": "app.py"}, 31), returned("c4", "y", 31)
    )
    return made


def without_time(text):
    """The output without how long it took."""
    return re.sub(r"[\d,]+ ms", "9 ms", text)


def test_hits_stand_below_their_sessions(cli, story):
    """Newest first, each with its turn, who wrote it, and the line; below them the command for the replay."""
    ran = cli("find", "retry budget", *NOW)
    assert ran.code == 0
    assert without_time(ran.out) == (
        "2 hits in 1 session · 9 ms\n\n"
        "20 Nov 10:05  claude-code  /src/api  “make the retry budget configurable”\n"
        "    10:05:00  turn 1    answer  The retry_budget is in the config now.\n"
        "    10:00:00  turn 1    you     make the retry budget configurable\n"
        f"    sessionlog replay {session_id(1)[-8:]} --at 2026-11-20T10:05:00.000000Z\n"
    )


def test_the_command_opens_the_replay_there(cli, story):
    """From the answer that has the hit; what came before is left out."""
    [hit] = cli("find", "config", *NOW, "--json").json["hits"]
    ran = cli(*hit["replay"].split()[1:], "--plain")
    assert "The retry_budget is in the config now." in ran.out
    assert "ModuleNotFoundError" not in ran.out
    assert "ModuleNotFoundError" in cli("replay", hit["session"], "--plain").out


@pytest.mark.parametrize("place", ["file", "folder", "export"])
def test_a_path_among_the_words_is_said_to_be_a_word(cli, story, place, tmp_path, monkeypatch):
    """Other commands take a path at the end. Also where a hit has the word."""
    monkeypatch.chdir(tmp_path)
    named = {"file": tmp_path / "budget", "folder": tmp_path / "budget", "export": "./budget"}[place]
    (tmp_path / "budget").touch() if place == "file" else (tmp_path / "budget").mkdir()
    ran = cli("find", "retry", named, *NOW)
    assert ran.err.count(f"{named} was searched as a word: --project FOLDER, --source AGENT or --session ID") == 1


def test_a_name_of_a_folder_here_is_a_place_where_nothing_is_found(cli, story, tmp_path, monkeypatch):
    """With hits it was a word indeed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "unheard").mkdir()
    assert "unheard was searched as a word" in cli("find", "retry", "unheard", *NOW).err


@pytest.mark.parametrize("words", [["retry", "budget"], ["retry", "/nowhere/budget"], ["./budget"]])
def test_other_words_are_no_places(cli, story, words, tmp_path, monkeypatch):
    """Neither what does not exist, nor a plain word that hits have, nor a single one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "budget").mkdir()
    assert "searched as a word" not in cli("find", *words, *NOW).err


def test_json_has_marks_and_the_command(cli, story):
    """One document, with the texts whole."""
    document = cli("find", "config*", "--in", "answers", "--json", *NOW).json
    assert (document["schema"], document["total"], document["total_is_exact"]) == ("sessionlog.find/1", 1, True)
    [hit] = document["hits"]
    assert [hit["text"][start:end] for start, end in hit["marks"]] == ["config"]
    assert (hit["kind"], hit["turn"], hit["time"], hit["where"]) == ("answer", 1, "2026-11-20T10:05:00.000000Z", "log")


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        (["--in", "prompts"], ["prompt"]),
        (["--in", "answers"], ["answer"]),
        (["--in", "tools"], ["call", "error"]),
        (["--regex", "import b"], ["call"]),
        (["--source", "codex"], []),
        (["--source", "claude*"], ["answer", "call", "error", "prompt"]),
        (["--project", "/src/*"], ["answer", "call", "error", "prompt"]),
        (["--project", "/other"], []),
        (["--session", "00000001"], ["answer", "call", "error", "prompt"]),
        (["--since", "2026-11-20T10:05:00Z..2026-11-20T10:06:00Z"], ["answer"]),
        (["-n", "1"], ["answer"]),
    ],
)
def test_filters(cli, story, arguments, kinds):
    """By text, pattern, agent, project, session and time."""
    document = cli("find", "budget", *arguments, "--json", *NOW).json
    assert sorted(hit["kind"] for hit in document["hits"]) == kinds


def test_a_file_s_changes(cli, story):
    """The calls that name it, newest first, each with what it changed; a relative path is one of the project's."""
    ran = cli("find", "--file", "src/api/app.py", *NOW)
    assert without_time(ran.out) == (
        "2 hits in 2 sessions · 9 ms\n\n"
        "20 Nov 10:31  claude-code  /src/api  “explain app.py”\n"
        "    10:31:00  turn 1    Read  app.py  read\n"
        f"    sessionlog replay {session_id(2)[-8:]} --at 2026-11-20T10:31:00.000000Z\n\n"
        "20 Nov 10:03  claude-code  /src/api  “make the retry budget configurable”\n"
        "    10:03:00  turn 1    Edit  /src/api/app.py  +1 −1\n"
        "        - import x\n"
        "        + import budget\n"
        "          y\n"
        f"    sessionlog replay {session_id(1)[-8:]} --at 2026-11-20T10:03:00.000000Z\n"
    )
    document = cli("find", "--file", "app.py", "--json", *NOW).json
    assert [hit["change"] for hit in document["hits"]] == [[], ["-import x", "+import budget", " y"]]
    assert cli("find", "--file", "/elsewhere/app.py", *NOW).code == 1


def test_what_mended_an_error(cli, story):
    """The calls after it until the same call succeeded, and the last answer."""
    ran = cli("find", "--error", "ModuleNotFoundError", *NOW)
    assert without_time(ran.out) == (
        "1 error in 1 session · 9 ms\n\n"
        "20 Nov 10:02  claude-code  /src/api  “make the retry budget configurable”\n"
        "    10:02:00  turn 1    error  ModuleNotFoundError: no module named budget\n"
        "      call Bash  pytest -q\n"
        "      then Edit  /src/api/app.py⏎import x⏎y⏎import budget⏎y\n"
        "        - import x\n"
        "        + import budget\n"
        "          y\n"
        "      then Bash  pytest -q\n"
        "      ✔ the same call of Bash succeeded after 2 calls\n"
        "      last answer  The retry_budget is in the config now.\n"
        f"    sessionlog replay {session_id(1)[-8:]} --at 2026-11-20T10:02:00.000000Z\n"
    )
    [hit] = cli("find", "--error", "ModuleNotFoundError", "--json", *NOW).json["hits"]
    assert (hit["call"], hit["outcome"], hit["calls"]) == ("Bash\npytest -q", "same call", 2)


def test_an_error_that_is_not_marked_as_one(cli, story):
    """Results with these words are shown, and a note says that they did not fail."""
    ran = cli("find", "--error", "passed", *NOW)
    assert ran.code == 0
    assert "not marked as failed" in ran.err


def test_nothing_found_exits_1(cli, story):
    """As grep does; nothing is on stdout, but for JSON."""
    ran = cli("find", "zebra", *NOW)
    assert (ran.code, ran.out) == (1, "")
    assert "nothing found" in ran.err
    ran = cli("find", "zebra", "--json", *NOW)
    assert (ran.code, ran.json["hits"]) == (1, [])


def test_a_home_without_logs(cli, home):
    """Is told where logs would be, as in reports."""
    ran = cli("find", "zebra", *NOW)
    assert (ran.code, ran.out) == (1, "")
    assert "no other agent's logs (`sessionlog sources` shows where they would be)" in ran.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (['"zebra crossing'], 'a " is not closed'),
        (
            ["--error", "zebra"],
            "no failed call and no result has these words; `sessionlog find WORDS` searches prompts",
        ),
        (["--file", "zebra.py"], "no call names this file; `sessionlog find NAME` searches all texts"),
    ],
)
def test_nothing_found_names_the_next_step(cli, story, arguments, sentence):
    """What may find more, by what was asked for."""
    ran = cli("find", *arguments, *NOW)
    assert (ran.code, ran.out) == (1, "")
    assert sentence in ran.err


def test_the_first_line_counts_all_hits_and_the_sessions_that_are_shown(cli, story):
    """They are no longer one sentence where not all are shown."""
    ran = cli("find", "py*", "-n", "1", *NOW)
    assert without_time(ran.out).startswith("5 hits · shown: the newest 1, in 1 session (-n shows more) · 9 ms\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the words to find, or --file PATH, or --error TEXT"),
        (["--regex", "y"], "--regex narrows what words find"),
        (["x", "--file", "y"], "give the words to find, or --file PATH, or --error TEXT"),
        (["--file", "y", "--in", "tools"], "--in is about words"),
        (["--file", "y", "--regex", "y"], "--regex is about words"),
        (["x", "--in", "stories"], "--in 'stories' is none of prompts, answers, tools, paths"),
        (["++"], "has no word to search for"),
        (["x", "--regex", "("], "is no regular expression"),
        (["x", "--session", "zzz"], "no session begins or ends with it"),
        (["x", "--source", "clod"], "there is no source 'clod'"),
    ],
)
def test_wrong_usage_exits_2(cli, story, arguments, message):
    """One sentence names what is wrong."""
    ran = cli("find", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_hostile_texts_cannot_act(cli, story):
    """Control characters of prompts, texts, tools and paths are visible."""
    story.write(
        3,
        said("hostile \x1b]0;title\x07 \u202e text", 40),
        called("c9", "To\x1bol", {"path": "/a\x9b2J/hostile\r"}, 41),
    )
    for words in (["hostile"], ["--file", "hostile"]):
        ran = cli("find", *words, *NOW)
        assert ran.code == 0
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", ran.out)


def test_without_news_a_search_loads_only_what_it_needs(story):
    """In a fresh interpreter: one source, and nothing that scans, indexes, prices, replays or starts processes."""
    code = (
        "import sys; from sessionlog.cli import main; "
        "code = main(sys.argv[1:]); print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    place = story.folder / ".local/share/sessionlog"
    place.mkdir(parents=True, mode=0o700)
    for path in [story.folder, *story.folder.rglob("*")]:
        story.age(path, 60)
    for number in range(3):  # the first fills ledger and index, the second finds nothing new
        ran = subprocess.run([sys.executable, "-c", code, "find", "budget"], capture_output=True, text=True, check=True)
        if not number:
            story.age(place / "ledger.sqlite", 60)
    assert "retry_budget" in ran.stdout
    loaded = set(ran.stderr.split())
    assert {name for name in loaded if name.startswith("sessionlog.sources.c")} == {
        "sessionlog.sources.claude_code", "sessionlog.sources.claude_keys", "sessionlog.sources.contents",
    }  # fmt: skip
    unneeded = {
        "sessionlog.search.update", "sessionlog.search.extract", "sessionlog.search.mended", "sessionlog.ledger.new_logs",
        "sessionlog.pricing.book", "sessionlog.sources.native", "sessionlog.render.replay", "sessionlog.engine",
        "sessionlog.analytics.selection", "typer", "rich",
    }  # fmt: skip
    assert unneeded & loaded == set()


def test_the_example_of_the_documentation(cli, story):
    """It is what the command prints."""
    page = Path(__file__).parents[2] / "docs" / "find.md"
    [block] = re.findall(r"^```console\n\$ (.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    command, _, shown = block.partition("\n")
    assert command == 'sessionlog find "retry budget"'
    assert without_time(cli("find", "retry budget", *NOW).out) == without_time(shown)


def test_no_id_is_named_by_most_of_it(cli, story):
    """Of short ids that end alike the whole is shown."""
    for name in ("first-session", "other-session"):
        row = said(f"begin the {name}") | {"sessionId": name}
        story.logs.joinpath(f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    out = cli("find", "begin", *NOW).out
    assert re.findall(r"replay (\S+)", out) == ["other-session", "first-session"]
