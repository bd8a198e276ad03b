"""The guard's hooks in the settings of an agent: added beside what is there, and taken back to the byte."""

import json

import pytest

from sessionlog.errors import InvalidSettings
from sessionlog.guard.hook import AGENTS
from sessionlog.guard.hook_settings import hooks_of, install, settings_path, uninstall

FILES = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}
COMMAND = "/bin/sessionlog guard {}"


@pytest.fixture(params=AGENTS)
def agent(request):
    """Each agent in turn."""
    return AGENTS[request.param]


@pytest.fixture
def env(tmp_path):
    """A user with an empty home folder."""
    return {"HOME": str(tmp_path)}


@pytest.fixture
def path(agent, tmp_path):
    """The agent's settings file, which does not exist yet."""
    path = tmp_path / FILES[agent.id]
    path.parent.mkdir()
    return path


def command(agent):
    """The command of the agent's hook."""
    return COMMAND.format(agent.id)


def of_others(event):
    """A hook of another program at an event."""
    return {event: [{"matcher": "Bash", "hooks": [{"type": "command", "command": "lint guard codex"}]}]}


FOUND = [
    None, "", "{}", "{}\n", '{"a": 1}', '{\n  "a": 1\n}\n', '{\n    "a": {\n        "b": [1.5, "é"]\n    }\n}',
    '{\n\t"a": 1\n}\n', '{\r\n  "a": 1\r\n}\r\n', '{"hooks": {}}', '{"hooks": {"Stop": []}, "z": "\\ud83e"}',
    json.dumps({"hooks": of_others("PreToolUse")}), json.dumps({"hooks": of_others("BeforeTool"), "b": 2}, indent=2),
]  # fmt: skip


@pytest.mark.parametrize("found", FOUND)
def test_hooks_are_added_once_and_taken_back_to_the_byte(found, agent, env, path):
    """A file that did not exist is removed."""
    if found is not None:
        path.write_bytes(found.encode())
    assert install(agent, command(agent), env)
    written = path.read_bytes()
    settings, before = json.loads(written), json.loads(found or "{}")
    for event, groups in hooks_of(agent, command(agent)).items():
        assert settings["hooks"][event] == [*before.get("hooks", {}).get(event, []), *groups]
    assert {**settings, "hooks": 0} == {**before, "hooks": 0}
    assert not install(agent, command(agent), env)
    assert path.read_bytes() == written
    assert uninstall(agent, env)
    assert (path.read_bytes().decode() if path.exists() else None) == found
    assert not uninstall(agent, env)


@pytest.mark.parametrize("found", ['{\n    "a": 1\n}', '{\n\t"a": 1\n}\n', '{\r\n  "a": 1\r\n}\r\n', '{"a": 1}'])
def test_the_style_of_the_file_is_kept(found, agent, env, path):
    """Its indent, its line ends and whether a newline ends it."""
    path.write_bytes(found.encode())
    install(agent, command(agent), env)
    text = path.read_bytes().decode()
    assert text.startswith(found[: found.index('"a"')])
    assert text[-1] == found[-1]
    assert text.count("\r\n") == (text.count("\n") if "\r\n" in found else 0)


def test_what_was_changed_meanwhile_stays(agent, env, path):
    """Only our hooks are removed then, also from a group that has others."""
    path.write_text('{"a": 1}')
    install(agent, command(agent), env)
    settings = json.loads(path.read_text())
    event = next(iter(agent.moments))
    settings["hooks"][event][0]["hooks"].append({"type": "command", "command": "lint"})
    settings["hooks"]["Stop"] = [{"hooks": [{"type": "command", "command": "notify"}]}]
    settings["b"] = 2
    path.write_text(json.dumps(settings))
    assert uninstall(agent, env)
    left = json.loads(path.read_text())
    [group] = left["hooks"].pop(event)
    assert group["hooks"] == [{"type": "command", "command": "lint"}]
    assert left == {"a": 1, "b": 2, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "notify"}]}]}}
    assert not uninstall(agent, env)


def test_another_guard_command_is_replaced(agent, env, path):
    """As after an update that moved the program; what was there before the first one is put back at last."""
    path.write_text('{"a": 1}')
    install(agent, f"/old/python -P -m sessionlog guard {agent.id} --strict", env)
    assert install(agent, command(agent), env)
    assert json.loads(path.read_text()) == {"a": 1, "hooks": hooks_of(agent, command(agent))}
    assert uninstall(agent, env)
    assert path.read_text() == '{"a": 1}'


def test_hooks_that_were_added_by_hand_are_removed(agent, env, path):
    """Nothing was kept of the file before."""
    path.write_text(json.dumps({"a": 1, "hooks": hooks_of(agent, f"sessionlog guard {agent.id}")}))
    assert uninstall(agent, env)
    assert path.read_text() == '{"a": 1}'


def test_hooks_that_were_added_by_hand_and_then_replaced_are_removed(agent, env, path):
    """The file before `install` is not put back with them."""
    path.write_text(json.dumps({"a": 1, "hooks": hooks_of(agent, f"sessionlog guard {agent.id}")}))
    assert install(agent, command(agent), env)
    assert uninstall(agent, env)
    assert path.read_text() == '{"a": 1}'


def test_a_damaged_record_of_the_file_before_is_not_used(agent, env, path, tmp_path):
    """Our hooks are removed all the same."""
    install(agent, command(agent), env)
    [kept] = (tmp_path / ".local/state/sessionlog/guard/installed").iterdir()
    kept.write_text('{"before": 5')
    assert uninstall(agent, env)
    assert json.loads(path.read_text()) == {}


OURS = [
    "sessionlog guard {}", "/opt/bin/sessionlog guard {} --strict --ledger /l.sqlite", "python3 -m sessionlog guard {}",
    "'/my tools/sessionlog' guard {} --ledger='/a; b/l.sqlite'", '"/my tools/sessionlog" guard {}',
    "$HOME/bin/sessionlog guard {}", "/v/python3.12 -P -m sessionlog guard {} --strict", "/v/sessionlog.exe guard {}",
    "sessionlog guard {} --later 5 --also",
]  # fmt: skip
NOT_OURS = [
    "sessionlog guard {} && notify", "sessionlog guard {}; notify", "sessionlog guard {} ; notify", "notify | sessionlog guard {}",
    "sessionlog guard {} > /tmp/log", "sessionlog guard {} --strict\nnotify", "sessionlog guard {} --ledger /x;notify",
    "sessionlog guard {} --ledger $(notify)", "(sessionlog guard {})", "sessionlog guard {} &", "sessionlog guard {} notify",
    "sessionlog guard {} --strict notify", "echo sessionlog guard {}", "my-wrapper /opt/sessionlog guard {}",
    "timeout 5 sessionlog guard {}", "A=1 sessionlog guard {}", "sh -c 'sessionlog guard {}; notify'", "sessionlog guard",
    "python3 notify.py -m sessionlog guard {}", "sessionlog status guard {}", "not-sessionlog guard {}", "sessionlog guard {}x",
    "sessionlog guard {} '", "sessionlog run -- sessionlog guard {}", "", 5,
]  # fmt: skip


@pytest.mark.parametrize("theirs", NOT_OURS, ids=range(len(NOT_OURS)))
def test_a_hook_that_only_has_the_words_is_its_users(theirs, agent, env, path):
    """It stays, whatever is installed and removed."""
    theirs = theirs.format(agent.id) if isinstance(theirs, str) else theirs
    event = next(iter(agent.moments))
    path.write_text(before := json.dumps({"hooks": {event: [{"hooks": [{"type": "command", "command": theirs}]}]}}))
    assert not uninstall(agent, env)
    assert path.read_text() == before
    assert install(agent, command(agent), env)
    assert json.loads(path.read_text())["hooks"][event][0]["hooks"][0]["command"] == theirs
    path.write_text(json.dumps({**json.loads(path.read_text()), "later": 1}))
    assert uninstall(agent, env)
    assert json.loads(path.read_text()) == {**json.loads(before), "later": 1}


@pytest.mark.parametrize("ours", OURS)
def test_a_hook_that_runs_the_guard_is_ours(ours, agent, env, path):
    """By any path, in any quotes, with any options."""
    path.write_text(json.dumps({"a": 1, "hooks": hooks_of(agent, ours.format(agent.id))}))
    assert uninstall(agent, env)
    assert path.read_text() == '{"a": 1}'


def test_a_hook_of_another_agent_is_not_of_this_one(agent, env, path):
    """Each agent has its own settings, which another's hook is in by mistake or by intent."""
    other = next(one for one in AGENTS if one != agent.id)
    path.write_text(json.dumps({"hooks": hooks_of(agent, f"sessionlog guard {other}")}))
    assert not uninstall(agent, env)


BROKEN = [
    "{", "// comment\n{}", "[]", "5", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', '{"hooks": {"Stop": [5]}}',
    '{"hooks": {"Stop": [{"hooks": 5}]}}', "[" * 100_000, "\udcff",
]  # fmt: skip


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_is_never_written_to(text, agent, env, path):
    """One sentence names it and the next step."""
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    for change in (lambda: install(agent, command(agent), env), lambda: uninstall(agent, env)):
        with pytest.raises(InvalidSettings, match=r"it is left as it is: add or remove the hooks by hand"):
            change()
    assert path.read_bytes() == text.encode("utf-8", "surrogateescape")


def test_a_link_stays_a_link_and_permissions_stay(agent, env, path, tmp_path):
    """Settings are often kept elsewhere, and may hold keys."""
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    path.symlink_to(real)
    install(agent, command(agent), env)
    assert path.is_symlink()
    assert json.loads(real.read_text())["hooks"]
    assert real.stat().st_mode & 0o777 == 0o640
    [kept] = (tmp_path / ".local/state/sessionlog/guard/installed").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("agent_id", "variable", "file"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "settings.json"), ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
    ],
)  # fmt: skip
def test_the_agents_own_variable_names_the_folder(agent_id, variable, file, tmp_path):
    """As the agent itself finds it."""
    env = {"HOME": "/nowhere", variable: str(tmp_path / "x")}
    assert settings_path(AGENTS[agent_id], env) == str((tmp_path / "x" / file).resolve())


def test_nothing_to_remove(agent, env):
    """Without a file."""
    assert not uninstall(agent, env)
