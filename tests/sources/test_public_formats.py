"""Agents known from their public formats: where their logs are looked for, and what their truth cases cannot show."""

import json

import pytest

from sessionlog.events.envelope import Event
from sessionlog.sources.registry import load_source
from tests.sources.homes import build_home, environment


@pytest.mark.parametrize(
    ("source", "env", "places"),
    [
        ("copilot", {}, ["/h/.copilot/session-state", "/h/.copilot/session-store.db"]),
        ("copilot", {"COPILOT_HOME": "/c"}, ["/c/session-state", "/c/session-store.db"]),
        ("cline", {"CLINE_DIR": "~/c"}, ["/h/c/data/sessions"]),
        ("droid", {"DROID_SESSIONS_DIR": "/d"}, ["/d", "/h/.factory/sessions"]),
        ("amp", {"AMP_DATA_DIR": "/a, /b"}, ["/a/threads", "/b/threads"]),
        ("amp", {"XDG_DATA_HOME": "/x"}, ["/x/amp/threads"]),
        ("grok", {"GROK_HOME": "/g"}, ["/g/sessions"]),
        ("crush", {}, ["/h/.local/share/crush"]),
        ("hermes", {}, ["/h/.hermes/state.db"]),
    ],
)
def test_logs_are_looked_for_where_the_agent_keeps_them(source, env, places):
    """By the agent's own variables, else in its folder."""
    assert list(load_source(source).locate({"HOME": "/h", **env})) == places


def test_projects_of_crush_are_found_by_their_list(tmp_path):
    """A path may be relative to its project, and projects that are gone or share a folder are listed once or not."""
    source = load_source("crush")
    home = build_home("crush/cost-alone", tmp_path)
    projects = [
        {"path": str(home / "w" / "api"), "data_dir": ".crush"},
        {"path": str(home / "w"), "data_dir": str(home / "w" / "api" / ".crush")},
        {"path": "/nowhere", "data_dir": ".crush"},
        7,
    ]
    registry = home / ".local/share/crush/projects.json"
    registry.parent.mkdir(parents=True)
    registry.write_text(json.dumps({"projects": projects}))
    [place] = source.locate({"HOME": str(home)})
    assert list(source.list_logs(place)) == [str(registry), str(home / "w/api/.crush/crush.db")]
    assert source.recognises(str(registry), registry.read_bytes())
    assert source.scan(str(registry), None).sessions == ()


def test_a_profile_of_hermes_that_is_new_is_found(tmp_path):
    """By its name below the folder of profiles."""
    database = tmp_path / ".hermes/profiles/mine/state.db"
    database.parent.mkdir(parents=True)
    database.touch()
    assert str(database) in load_source("hermes").locate({"HOME": str(tmp_path)})


def events_of(case, tmp_path, session=None):
    """The events of the first log of a case."""
    source = load_source(case.partition("/")[0])
    env = environment(case, build_home(case, tmp_path))
    log = next(log for place in source.locate(env) for log in source.list_logs(place))
    return [item for item in source.read(log, session) if isinstance(item, Event)]


@pytest.mark.parametrize(
    "case",
    ["copilot/session", "cline/session", "goose/calls", "grok/turns", "amp/messages", "hermes/sums", "droid/session"],
)
def test_a_session_reads_as_a_conversation(case, tmp_path):
    """The prompt, what the agent answered, its tool with what it gave back, and the last words."""
    events = events_of(case, tmp_path)
    requests = [event for event in events if event.type == "llm.request"]
    assert {"role": "user", "content": "list the files"} in requests[0].data["messages"]
    tools = [event.data for event in events if event.type == "tool.call"]
    assert tools
    assert any(tool.get("error") for tool in tools)
    assert "ls" in json.dumps(tools[0]["input"])
    assert any(event.data["content"].endswith(("a.py.", "one.")) for event in events if event.type == "llm.response")


def test_what_a_sub_agent_answers_is_beside_the_conversation(tmp_path):
    """A session of Goose is read with its sub-agents'."""
    events = events_of("goose/sub-agent-and-copy", tmp_path, "20261110_1")
    assert [event.data.get("agent") for event in events if event.type == "llm.response"] == [None, "sub-agent"]
