"""How each agent is led through the proxy, and where the proxy sends its requests on to."""

import json
import os
from pathlib import Path

import pytest

from sessionlog.proxy.agents import claude_code, codex, plan, qwen_code
from sessionlog.proxy.agents.table import AGENTS
from sessionlog.sources.names import OURS

PROXY = "http://127.0.0.1:9/s"
FIRST_PARTY = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"


@pytest.fixture(autouse=True)
def _no_system_settings(monkeypatch, tmp_path):
    """What an administrator has set on this machine is none of the tests' business."""
    for module in (claude_code, codex, qwen_code):
        name = "MANAGED" if module is claude_code else "SYSTEM"
        monkeypatch.setattr(module, name, str(tmp_path / "system" / module.__name__))


class Machine:
    """A home and a project, and what a plan makes of commands there."""

    def __init__(self, root):
        self.home, self.project, self.private = root / "home", root / "home/work/project", root / "private"
        for folder in (self.project, self.private):
            folder.mkdir(parents=True)

    def write(self, path, value):
        """Write a file below the home; a value that is no text as JSON."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value))
        return str(file)

    def private_file(self, name, text):
        """Write a private file."""
        (self.private / name).write_text(text)
        return str(self.private / name)

    def plan(self, *command, private=True, upstreams=None, **environment):
        """Plan a command, run in the project."""
        return plan(
            command,
            {"HOME": str(self.home), **environment},
            lambda route: f"{PROXY}/{route}",
            upstreams=upstreams,
            folder=str(self.project),
            private_file=self.private_file if private else None,
        )


@pytest.fixture
def machine(tmp_path):
    """An empty home with a project."""
    return Machine(tmp_path)


def changed(machine, launch):
    """The variables that the plan has set."""
    return {name: value for name, value in launch.environment.items() if name != "HOME"}


# Programs


@pytest.mark.parametrize(
    ("command", "harness"),
    [
        ("claude -p x", "claude-code"),
        ("/usr/local/bin/claude", "claude-code"),
        ("npx @anthropic-ai/claude-code -p x", "claude-code"),
        ("npx -y @openai/codex@latest exec x", "codex"),
        ("npx -p @openai/codex -- codex exec x", "codex"),
        ("npm exec -- gemini -p x", "gemini"),
        ("pnpm dlx opencode-ai run x", "opencode"),
        ("bunx @qwen-code/qwen-code@0.24.4", "qwen-code"),
        ("bun x codex", "codex"),
        ("node --no-warnings /opt/node_modules/@google/gemini-cli/bundle/gemini.js -p x", "gemini"),
        (r"C:\tools\codex.exe exec", "codex"),
        ("uv run --with x claude", "claude-code"),
        ("uv tool run llm x", "llm"),
        ("uvx --from kimi-cli kimi", "kimi"),
        ("env A=1 B=2 codex exec x", "codex"),
        ("timeout -k 5 60 nice -n 5 nohup claude -p x", "claude-code"),
        ("python agent.py", "python"),
        ("uv run agent.py", "agent"),
        ("sh -c claude", "sh"),
        ("npx", "npx"),
        ("timeout 5", "timeout"),
        ("uv sync claude", "uv"),
        ("env -i claude", "claude-code"),
        ("env -u A codex exec x", "codex"),
        ("env A=1", "env"),
        ("mycodex", "mycodex"),
    ],
)
def test_a_program_is_found_behind_its_runners(machine, command, harness):
    """What a shell makes of a text is not guessed."""
    assert machine.plan(*command.split()).harness == harness


def test_variables_of_env_are_the_childs(machine):
    """A leading `env` would overrule ours: its variables are read, and it is left out."""
    launch = machine.plan("env", "ANTHROPIC_BASE_URL=https://llm.example", "claude", "-p", "x")
    assert launch.command == ("claude", "-p", "x")
    assert launch.upstreams == {"anthropic": "https://llm.example"}
    assert launch.environment["ANTHROPIC_BASE_URL"] == f"{PROXY}/anthropic"


@pytest.mark.parametrize(
    "words", [["env", "A=1"], ["env", "A=1", "-i", "claude"], ["npx", "--"], ["node"], ["timeout"]]
)
def test_a_command_that_runs_nothing_known_is_left_alone(machine, words):
    """A plan adds nothing to words that it does not understand."""
    assert machine.plan(*words).command == tuple(words)


# Any program


def test_an_unknown_program_gets_the_variables_of_all_sdks(machine):
    """Each leads to its own server."""
    launch = machine.plan("python", "agent.py")
    assert changed(machine, launch) == {
        "ANTHROPIC_BASE_URL": f"{PROXY}/anthropic",
        FIRST_PARTY: "1",
        "OPENAI_BASE_URL": f"{PROXY}/openai/v1",
        "OPENAI_API_BASE": f"{PROXY}/openai/v1",
        "GOOGLE_GEMINI_BASE_URL": f"{PROXY}/google",
        "GROQ_BASE_URL": f"{PROXY}/groq",
    }
    assert launch.upstreams == {
        "anthropic": "https://api.anthropic.com",
        "openai": "https://api.openai.com",
        "google": "https://generativelanguage.googleapis.com",
        "groq": "https://api.groq.com",
    }
    assert (launch.source, launch.notes) == (None, ())


@pytest.mark.parametrize(
    ("variable", "address", "proxied", "upstreams"),
    [
        ("OPENAI_BASE_URL", "http://[::1]:8000/v1/", "openai/v1", {"openai": "http://[::1]:8000"}),
        ("OPENAI_API_BASE", "https://a.example/x/v1", "openai/x/v1", {"openai": "https://a.example"}),
        ("ANTHROPIC_BASE_URL", "https://a.example/b", "anthropic/b", {"anthropic": "https://a.example"}),
        ("ANTHROPIC_API_BASE", "https://a.example", "anthropic-2", {"anthropic-2": "https://a.example"}),
        ("GOOGLE_VERTEX_BASE_URL", "https://a.example", "google-2", {"google-2": "https://a.example"}),
        ("AZURE_OPENAI_ENDPOINT", "https://r.example/", "azure", {"azure": "https://r.example"}),
        ("OPENAI_BASE_URL", " https://a.example/v1?a=1 ", "openai/v1?a=1", {"openai": "https://a.example"}),
    ],
)
def test_an_address_that_was_set_becomes_the_upstream(machine, variable, address, proxied, upstreams):
    """The path stays in the address at the proxy, the server is what the route leads to."""
    launch = machine.plan("python", "agent.py", **{variable: address})
    assert launch.environment[variable] == f"{PROXY}/{proxied}"
    assert launch.upstreams.items() >= upstreams.items()


def test_openais_older_variable_takes_the_newer_ones_address(machine):
    """A library that reads both would otherwise leave the server that was set."""
    launch = machine.plan("python", "agent.py", OPENAI_BASE_URL="https://a.example/v1")
    assert launch.environment["OPENAI_API_BASE"] == f"{PROXY}/openai/v1"
    assert launch.upstreams["openai"] == "https://a.example"


def test_two_servers_under_one_name_are_two_routes(machine):
    """Neither is lost."""
    launch = machine.plan("python", OPENAI_BASE_URL="https://a.example/v1", OPENAI_API_BASE="https://b.example/v1")
    routes = {launch.environment[name].removeprefix(PROXY) for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE")}
    assert routes == {"/openai/v1", "/openai-2/v1"}
    assert {launch.upstreams["openai"], launch.upstreams["openai-2"]} == {"https://a.example", "https://b.example"}


@pytest.mark.parametrize(
    "address",
    [
        "a.example",
        "unix:///run/a.sock",
        "https://user:key@a.example/v1",
        "http://[::1",
        "https://a:port/",
        "//",
        "http://a b/",
    ],
)
def test_what_is_no_plain_address_stays(machine, address):
    """The program works as before, and a note without the user's key names what is not recorded."""
    launch = machine.plan("python", "agent.py", OPENAI_BASE_URL=address)
    assert launch.environment["OPENAI_BASE_URL"] == address
    assert "openai" not in launch.upstreams
    assert any("openai" in note and "not recorded" in note for note in launch.notes)
    assert "key" not in " ".join(launch.notes)


def test_a_chosen_upstream_takes_the_place_of_the_agents_own(machine):
    """Its path counts, too."""
    launch = machine.plan("python", "agent.py", upstreams={"openai": "http://localhost:8000/api/v1"})
    assert launch.environment["OPENAI_BASE_URL"] == f"{PROXY}/openai/api/v1"
    assert launch.upstreams["openai"] == "http://localhost:8000"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p"}, "127.0.0.1,localhost"),
        ({"all_proxy": "http://p", "no_proxy": "a.example, localhost"}, "a.example,localhost,127.0.0.1"),
        ({"http_proxy": "http://p", "no_proxy": "*"}, "*"),
        ({"http_proxy": ""}, None),
    ],
)
def test_no_other_proxy_stands_before_ours(machine, environment, expected):
    """A child with a proxy in its environment asks this machine directly."""
    assert machine.plan("python", **environment).environment.get("no_proxy") == expected


def test_the_given_environment_stays_as_it_is(machine):
    """A plan changes a copy."""
    given = {"HOME": str(machine.home), "OPENAI_BASE_URL": "https://a.example/v1"}
    kept = dict(given)
    plan(["python"], given, lambda route: f"{PROXY}/{route}", folder=str(machine.project))
    assert given == kept


def test_the_working_directory_is_where_a_command_runs(machine, monkeypatch):
    """Settings of the project there are read."""
    machine.write("work/project/.claude/settings.json", {"env": {"ANTHROPIC_BASE_URL": "https://a.example"}})
    monkeypatch.chdir(machine.project)
    launch = plan(["claude"], {"HOME": str(machine.home)}, lambda route: f"{PROXY}/{route}")
    assert launch.upstreams == {"anthropic": "https://a.example"}


# Claude Code


def settings_in(launch):
    """The settings of a planned command line."""
    return json.loads(launch.command[launch.command.index("--settings") + 1])


def test_claude_code_by_its_variable(machine):
    """Without settings of its own it gets the variable alone, and knows that Anthropic is behind it."""
    launch = machine.plan("claude", "-p", "x")
    assert launch.command == ("claude", "-p", "x")
    assert changed(machine, launch) == {"ANTHROPIC_BASE_URL": f"{PROXY}/anthropic", FIRST_PARTY: "1"}
    assert (launch.upstreams, launch.source) == ({"anthropic": "https://api.anthropic.com"}, "claude-code")


@pytest.mark.parametrize("program", ["claude", "python"])
@pytest.mark.parametrize("address", ["https://gateway.example", "https://api.anthropic.com.example/"])
def test_claude_code_behind_a_gateway_is_not_called_first_party(machine, program, address):
    """Only requests that end at Anthropic may have what only Anthropic knows."""
    assert FIRST_PARTY not in machine.plan(program, ANTHROPIC_BASE_URL=address).environment
    assert FIRST_PARTY not in machine.plan(program, upstreams={"anthropic": address}).environment


@pytest.mark.parametrize(
    ("path", "beaten"),
    [
        (".claude/settings.json", []),
        ("work/project/.claude/settings.json", [".claude/settings.json"]),
        ("work/project/.claude/settings.local.json", ["work/project/.claude/settings.json", ".claude/settings.json"]),
    ],
)
def test_claude_codes_settings_beat_the_environment(machine, path, beaten):
    """So the address goes into `--settings`, which beats them, and theirs becomes the upstream."""
    for other in beaten:
        machine.write(other, {"env": {"ANTHROPIC_BASE_URL": "https://beaten.example"}})
    machine.write(path, {"env": {"ANTHROPIC_BASE_URL": "https://set.example/a"}, "model": "opus"})
    launch = machine.plan("claude", "-p", "x", ANTHROPIC_BASE_URL="https://variable.example")
    assert launch.upstreams == {"anthropic": "https://set.example"}
    assert settings_in(launch) == {"env": {"ANTHROPIC_BASE_URL": f"{PROXY}/anthropic/a"}}
    assert launch.command[0::3] == ("claude", "-p")


def test_claude_codes_sources_of_settings_are_respected(machine):
    """What `--setting-sources` leaves out is not followed."""
    machine.write(".claude/settings.json", {"env": {"ANTHROPIC_BASE_URL": "https://user.example"}})
    launch = machine.plan("claude", "--setting-sources", "project,local", "-p", "x")
    assert launch.upstreams == {"anthropic": "https://api.anthropic.com"}


def test_claude_codes_own_folder_is_read(machine):
    """`$CLAUDE_CONFIG_DIR` stands in for ~/.claude."""
    machine.write("other/settings.json", {"env": {"ANTHROPIC_BASE_URL": "https://other.example"}})
    launch = machine.plan("claude", CLAUDE_CONFIG_DIR=str(machine.home / "other"))
    assert launch.upstreams == {"anthropic": "https://other.example"}


@pytest.mark.parametrize("joined", [True, False])
def test_claude_codes_given_settings_are_merged(machine, joined):
    """Nothing else of them changes, and they stay one option where they stood."""
    own = json.dumps({"env": {"ANTHROPIC_BASE_URL": "https://own.example", "A": "1"}, "model": "opus"})
    words = [f"--settings={own}"] if joined else ["--settings", own]
    launch = machine.plan("claude", "-p", "x", *words)
    merged = json.loads(launch.command[-1].removeprefix("--settings="))
    assert merged == {"env": {"ANTHROPIC_BASE_URL": f"{PROXY}/anthropic", "A": "1"}, "model": "opus"}
    assert len(launch.command) == 3 + len(words)
    assert launch.upstreams == {"anthropic": "https://own.example"}


def test_claude_codes_given_settings_file_is_merged_into_a_private_one(machine):
    """Its contents may be secret, and a command line is not; the user's file stays as it is."""
    path = machine.write("work/project/own.json", {"env": {"ANTHROPIC_AUTH_TOKEN": "secret"}})
    machine.write(".claude/settings.json", {"env": {"ANTHROPIC_BASE_URL": "https://user.example"}})
    before = Path(path).read_text()
    launch = machine.plan("claude", "--settings", "own.json", "-p", "x")
    assert launch.command[3:] == ("-p", "x")
    assert "secret" not in " ".join(launch.command)
    merged = json.loads(Path(launch.command[2]).read_text())
    assert merged == {"env": {"ANTHROPIC_AUTH_TOKEN": "secret", "ANTHROPIC_BASE_URL": f"{PROXY}/anthropic"}}
    assert Path(path).read_text() == before


def test_claude_codes_given_settings_file_without_a_private_place(machine):
    """Then it is not recorded, which a note states."""
    machine.write("work/project/own.json", {"env": {"ANTHROPIC_BASE_URL": "https://own.example"}})
    launch = machine.plan("claude", "--settings", "own.json", private=False)
    assert launch.command == ("claude", "--settings", "own.json")
    assert any("own.json" in note for note in launch.notes)


@pytest.mark.parametrize("value", ["/does/not/exist", "{broken", "", "[1]", "{}"])
def test_claude_codes_odd_settings_are_its_own_affair(machine, value):
    """They reach it unchanged; it names the error better than we could."""
    launch = machine.plan("claude", "--settings", value, "-p", "x")
    assert launch.command == ("claude", "--settings", value, "-p", "x")
    assert launch.environment["ANTHROPIC_BASE_URL"] == f"{PROXY}/anthropic"


@pytest.mark.parametrize("switch", [f"CLAUDE_CODE_USE_{cloud}" for cloud in ("BEDROCK", "VERTEX", "FOUNDRY")])
@pytest.mark.parametrize("in_settings", [True, False])
def test_claude_code_on_a_cloud_is_not_recorded(machine, switch, in_settings):
    """Nothing is changed, and a note names the reason."""
    if in_settings:
        machine.write(".claude/settings.json", {"env": {switch: "1"}})
    launch = machine.plan("claude", **({} if in_settings else {switch: "true"}))
    assert (launch.command, launch.upstreams) == (("claude",), {})
    assert any("recorded" in note for note in launch.notes)


def test_claude_codes_managed_settings_win(machine, tmp_path, monkeypatch):
    """An administrator's address cannot be overruled: nothing is changed, and a note names the reason."""
    managed = tmp_path / "managed.json"
    managed.write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": "https://managed.example"}}))
    monkeypatch.setattr(claude_code, "MANAGED", str(managed))
    launch = machine.plan("claude", "-p", "x")
    assert (launch.command, launch.upstreams) == (("claude", "-p", "x"), {})
    assert any("managed settings" in note for note in launch.notes)


@pytest.mark.parametrize(("cloud", "path"), [("FOUNDRY", "/anthropic"), ("VERTEX", "/v1")])
def test_claude_code_on_a_cloud_is_followed_where_its_address_is_set(machine, cloud, path):
    """Its requests are those of Anthropic's API."""
    variables = {f"CLAUDE_CODE_USE_{cloud}": "1", f"ANTHROPIC_{cloud}_BASE_URL": f"https://c.example{path}"}
    launch = machine.plan("claude", **variables)
    assert launch.environment[f"ANTHROPIC_{cloud}_BASE_URL"] == f"{PROXY}/anthropic-2{path}"
    assert launch.upstreams["anthropic-2"] == "https://c.example"


# Codex


CHATGPT = "https://chatgpt.com"
API = "https://api.openai.com"


def codexs_address(launch):
    """The address that Codex gets for the provider `openai`."""
    setting = launch.command[launch.command.index("-c") + 1]
    assert setting.startswith("openai_base_url=")
    return json.loads(setting.partition("=")[2])


@pytest.mark.parametrize(
    ("login", "environment", "upstream", "path"),
    [
        (None, {}, CHATGPT, "/backend-api/codex"),
        (None, {"OPENAI_API_KEY": "k"}, API, "/v1"),
        ({"tokens": {"access_token": "t"}}, {}, CHATGPT, "/backend-api/codex"),
        ({"tokens": {"access_token": "t"}}, {"OPENAI_API_KEY": "k"}, CHATGPT, "/backend-api/codex"),
        ({"tokens": {"access_token": "t"}}, {"CODEX_API_KEY": "k"}, API, "/v1"),
        ({"OPENAI_API_KEY": "k"}, {}, API, "/v1"),
        ({"auth_mode": "apikey", "OPENAI_API_KEY": "k", "tokens": {}}, {}, API, "/v1"),
        ({"auth_mode": "chatgpt", "OPENAI_API_KEY": "k"}, {}, CHATGPT, "/backend-api/codex"),
    ],
)
def test_codex_goes_where_its_login_leads(machine, login, environment, upstream, path):
    """The same provider asks the API with a key, and ChatGPT with its login."""
    if login:
        machine.write(".codex/auth.json", login)
    launch = machine.plan("codex", "exec", "x", **environment)
    assert codexs_address(launch) == f"{PROXY}/openai{path}"
    assert launch.command[3:] == ("exec", "x")
    assert launch.upstreams == {"openai": upstream}


@pytest.mark.parametrize(
    ("config", "words", "route", "upstream"),
    [
        ('model_provider = "p"\n[model_providers.p]\nbase_url = "https://p.example/v1"', [], "p/v1", "https://p.example"),
        ('[model_providers.p]\nbase_url = "https://p.example"', ["-c", 'model_provider="p"'], "p", "https://p.example"),
        ('[model_providers.p]\nbase_url = "https://p.example"', ["--config=model_provider=p"], "p", "https://p.example"),
        ('[model_providers.p]\nenv_key = "K"', ["-cmodel_provider=p"], "p/v1", "https://api.openai.com"),
        ('profile = "f"\n[profiles.f]\nmodel_provider = "p"\n[model_providers.p]\nbase_url = "http://p.example"',
         [], "p", "http://p.example"),
        ('[profiles.f]\nmodel_provider = "p"\n[model_providers.p]\nbase_url = "http://p.example"',
         ["--profile", "f"], "p", "http://p.example"),
    ],
)  # fmt: skip
def test_codexs_own_provider_is_followed(machine, config, words, route, upstream):
    """Its key and its headers stay where they are: only the address is another."""
    machine.write(".codex/config.toml", config)
    launch = machine.plan("codex", *words, "exec", "x", CODEX_API_KEY="k")
    assert launch.command == ("codex", "-c", f'model_providers.p.base_url="{PROXY}/{route}"', *words, "exec", "x")
    assert launch.upstreams == {"p": upstream}


def test_codexs_profile_may_be_a_file(machine):
    """`--profile NAME` lays $CODEX_HOME/NAME.config.toml over the configuration."""
    machine.write("c/config.toml", '[model_providers.p]\nbase_url = "https://p.example"\n')
    machine.write("c/work.config.toml", 'model_provider = "p"')
    launch = machine.plan("codex", "-p", "work", CODEX_HOME=str(machine.home / "c"))
    assert launch.upstreams == {"p": "https://p.example"}


@pytest.mark.parametrize(
    ("words", "planned"),
    [
        (["-c", 'openai_base_url="https://own.example/v1"'], ["-c", 'openai_base_url="P"']),
        (["--config=openai_base_url=https://own.example/v1"], ['--config=openai_base_url="P"']),
        (["-copenai_base_url=https://own.example/v1"], ['-copenai_base_url="P"']),
        (["exec", "-c", "openai_base_url = 'https://own.example/v1'"], ["exec", "-c", 'openai_base_url="P"']),
    ],
)
def test_codexs_address_on_the_command_line_is_replaced_where_it_stands(machine, words, planned):
    """One before it would lose."""
    launch = machine.plan("codex", *words, "x")
    assert launch.command == ("codex", *(word.replace("P", f"{PROXY}/openai/v1") for word in planned), "x")
    assert launch.upstreams == {"openai": "https://own.example"}


def test_codexs_address_in_its_configuration_is_followed(machine):
    """`openai_base_url` there becomes the upstream."""
    machine.write(".codex/config.toml", 'openai_base_url = "https://set.example/v1"')
    launch = machine.plan("codex", OPENAI_BASE_URL="https://ignored.example/v1")
    assert launch.upstreams == {"openai": "https://set.example"}


@pytest.mark.parametrize(
    ("config", "words", "environment", "address"),
    [
        ("", ["--oss"], {}, "http://localhost:11434"),
        ('oss_provider = "lmstudio"', ["--oss"], {}, "http://localhost:1234"),
        ("", ["--oss", "--local-provider", "lmstudio"], {}, "http://localhost:1234"),
        ('model_provider = "ollama"', [], {"CODEX_OSS_PORT": "99"}, "http://localhost:99"),
        ("", ["--oss"], {"CODEX_OSS_BASE_URL": "http://big.example:8/v1"}, "http://big.example:8"),
    ],
)
def test_codexs_local_servers_have_a_variable(machine, config, words, environment, address):
    """The built-in providers of local models cannot be changed on the command line."""
    machine.write(".codex/config.toml", config)
    launch = machine.plan("codex", *words, "exec", **environment)
    assert [*launch.upstreams.values()] == [address]
    assert launch.environment["CODEX_OSS_BASE_URL"].endswith("/v1")
    assert launch.command == ("codex", *words, "exec")


def test_codexs_words_after_two_dashes_are_its_prompt(machine):
    """They are no options."""
    launch = machine.plan("codex", "exec", "--", "--oss", "-c", "openai_base_url=x", CODEX_API_KEY="k")
    assert launch.upstreams == {"openai": API}
    assert launch.command[3:] == ("exec", "--", "--oss", "-c", "openai_base_url=x")


def test_codexs_options_may_be_long(machine):
    """A key of many parts is no provider's."""
    key = ".".join(["a"] * 20_000)
    assert machine.plan("codex", "-c", f"{key}=1", "-c", "a=" + "[" * 20_000, CODEX_API_KEY="k").upstreams == {
        "openai": API
    }


@pytest.mark.parametrize("provider", ["amazon-bedrock", "with.dot"])
def test_codexs_other_providers_are_named(machine, provider):
    """What cannot be led through the proxy works as before."""
    machine.write(".codex/config.toml", '[model_providers."with.dot"]\nbase_url = "https://p.example"')
    launch = machine.plan("codex", "-c", f'model_provider="{provider}"', "exec")
    assert launch.command == ("codex", "-c", f'model_provider="{provider}"', "exec")
    assert any(provider in note for note in launch.notes)


# Gemini CLI


@pytest.mark.parametrize(
    ("settings", "environment", "expected"),
    [
        ("gemini-api-key", {}, {"GOOGLE_GEMINI_BASE_URL": f"{PROXY}/google"}),
        (None, {"GEMINI_API_KEY": "k"}, {"GOOGLE_GEMINI_BASE_URL": f"{PROXY}/google"}),
        ("oauth-personal", {"GEMINI_API_KEY": "k"}, {"CODE_ASSIST_ENDPOINT": f"{PROXY}/google"}),
        (None, {"GOOGLE_GENAI_USE_GCA": "true"}, {"CODE_ASSIST_ENDPOINT": f"{PROXY}/google"}),
        ("vertex-ai", {}, {}),
        (None, {"GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_VERTEX_BASE_URL": "https://v.example"},
         {"GOOGLE_VERTEX_BASE_URL": f"{PROXY}/google"}),
        (None, {}, {"CODE_ASSIST_ENDPOINT": f"{PROXY}/google"}),
    ],
)  # fmt: skip
def test_gemini_cli_by_its_login(machine, settings, environment, expected):
    """Each login has its own server."""
    if settings:
        machine.write(".gemini/settings.json", {"security": {"auth": {"selectedType": settings}}})
    launch = machine.plan("gemini", "-p", "x", **environment)
    assert {name: value for name, value in launch.environment.items() if value.startswith(PROXY)} == expected
    assert launch.command == ("gemini", "-p", "x")


@pytest.mark.parametrize("path", ["work/project/.gemini/.env", "work/.env", ".gemini/.env", ".env"])
def test_gemini_cli_reads_a_dotenv_file(machine, path):
    """Its address is followed; the variable beats the file, which is not changed."""
    text = "# mine\nexport GEMINI_API_KEY=k\nGOOGLE_GEMINI_BASE_URL = 'https://set.example/x' # why\n"
    machine.write(path, text)
    launch = machine.plan("gemini")
    assert launch.upstreams == {"google": "https://set.example"}
    assert launch.environment["GOOGLE_GEMINI_BASE_URL"] == f"{PROXY}/google/x"


# Qwen Code


@pytest.mark.parametrize(
    ("settings", "environment", "upstream"),
    [
        ({}, {}, "https://api.openai.com"),
        ({}, {"OPENAI_BASE_URL": "https://v.example/v1"}, "https://v.example"),
        ({"env": {"OPENAI_BASE_URL": "https://e.example/v1"}}, {}, "https://e.example"),
        ({"security": {"auth": {"baseUrl": "https://s.example/v1"}}}, {}, "https://s.example"),
        ({"env": {"OPENAI_BASE_URL": "https://e.example/v1"}, "security": {"auth": {"baseUrl": "https://s.example"}}},
         {}, "https://e.example"),
    ],
)  # fmt: skip
def test_qwen_codes_address(machine, settings, environment, upstream):
    """The variable beats `env` of the settings, which beats the login's address."""
    machine.write(".qwen/settings.json", settings)
    launch = machine.plan("qwen", "-p", "x", **environment)
    assert launch.upstreams["openai"] == upstream
    assert launch.environment["OPENAI_BASE_URL"].startswith(f"{PROXY}/openai")


def test_qwen_codes_address_on_the_command_line(machine):
    """It is replaced where it stands."""
    launch = machine.plan("qwen", "--openai-base-url", "https://own.example/v1", "-p", "x")
    assert launch.command == ("qwen", "--openai-base-url", f"{PROXY}/openai-2/v1", "-p", "x")
    assert launch.upstreams["openai-2"] == "https://own.example"


def test_qwen_codes_providers_get_settings_of_this_run(machine):
    """The models' addresses beat all variables; keys and everything else stay, the user's file too."""
    models = [
        {"id": "a", "envKey": "K", "baseUrl": "https://dashscope.aliyuncs.com/compatible-mode/v1"},
        {"id": "b", "envKey": "L", "baseUrl": "https://b.example/v1"},
        {"id": "c"},
        7,
    ]
    path = machine.write(
        ".qwen/settings.json",
        {"modelProviders": {"openai": models, "odd": 3}, "model": {"baseUrl": "https://b.example/v1"}},
    )
    before = Path(path).read_text()
    launch = machine.plan("qwen", OPENAI_BASE_URL="https://v.example/v1")
    system = json.loads(Path(launch.environment["QWEN_CODE_SYSTEM_SETTINGS_PATH"]).read_text())
    first, second, *rest = system["modelProviders"]["openai"]
    assert (first["envKey"], first["baseUrl"]) == ("K", f"{PROXY}/openai-2/compatible-mode/v1")
    assert (second["envKey"], second["baseUrl"]) == ("L", f"{PROXY}/openai-3/v1")
    assert (rest, system["model"]["baseUrl"]) == (models[2:], second["baseUrl"])
    assert launch.environment["DASHSCOPE_PROXY_BASE_URL"] == first["baseUrl"]
    assert launch.upstreams["openai-3"] == "https://b.example"
    assert Path(path).read_text() == before


def test_qwen_codes_login_without_a_server_is_named(machine):
    """A login with Qwen's own account gets its server from the account."""
    launch = machine.plan("qwen", "--auth-type", "qwen-oauth")
    assert launch.upstreams == {}
    assert any("qwen-oauth" in note for note in launch.notes)


# opencode


def providers_of(launch, variable="OPENCODE_CONFIG_CONTENT"):
    """The addresses of the providers in a planned configuration."""
    content = json.loads(launch.environment.get(variable, "{}"))
    return {name: provider["options"]["baseURL"] for name, provider in content.get("provider", {}).items()}


def test_opencodes_providers_are_those_that_the_user_has(machine):
    """One without a key, a login or a configuration would appear among the models."""
    machine.write(".local/share/opencode/auth.json", {"openrouter": {"type": "api", "key": "secret"}, "odd": {}})
    machine.write(
        ".config/opencode/opencode.jsonc",
        '{ // mine\n "provider": {"own": {"options": {"baseURL": "{env:OWN}/v1", "apiKey": "k"}},'
        ' "google": {}, /* odd */ "bare": {}},\n}',
    )
    launch = machine.plan("opencode", "run", "x", ANTHROPIC_API_KEY="k", OWN="https://own.example//a")
    assert providers_of(launch) == {
        "anthropic": f"{PROXY}/anthropic/v1",
        "openrouter": f"{PROXY}/openrouter/api/v1",
        "own": f"{PROXY}/own//a/v1",
        "google": f"{PROXY}/google/v1beta",
    }
    assert launch.upstreams["own"] == "https://own.example"
    assert "secret" not in launch.environment["OPENCODE_CONFIG_CONTENT"]
    assert any(" odd " in note for note in launch.notes)


def test_opencodes_nearer_configuration_wins(machine):
    """A project's beats the user's, the variable's beats both, and keeps what else it has."""
    (machine.home / "work/.git").mkdir()
    for path, host in (
        (".config/opencode/opencode.json", "user"), ("opencode.json", "above"), ("work/opencode.json", "root"),
        ("work/project/.opencode/opencode.json", "project"),
    ):  # fmt: skip
        machine.write(path, {"provider": {"a": {"options": {"baseURL": f"https://{host}.example"}}}})
    assert machine.plan("opencode").upstreams == {"a": "https://project.example"}
    content = {
        "theme": "x",
        "provider": {"a": {"name": "A", "options": {"baseURL": "https://variable.example", "b": 1}}},
    }
    launch = machine.plan("opencode", OPENCODE_CONFIG_CONTENT=json.dumps(content))
    assert launch.upstreams == {"a": "https://variable.example"}
    planned = json.loads(launch.environment["OPENCODE_CONFIG_CONTENT"])
    content["provider"]["a"]["options"]["baseURL"] = f"{PROXY}/a"
    assert planned == content


def test_opencode_without_any_provider_is_left_alone(machine):
    """There is nothing to point at the proxy."""
    assert changed(machine, machine.plan("opencode")) == {}


def test_kilo_has_variables_of_its_own_name(machine):
    """It descends from opencode."""
    launch = machine.plan("kilo", "run", "x", OPENAI_API_KEY="k")
    assert providers_of(launch, "KILO_CONFIG_CONTENT") == {"openai": f"{PROXY}/openai/v1"}


# Others


@pytest.mark.parametrize(
    ("agent", "environment", "expected"),
    [
        ("copilot", {"COPILOT_PROVIDER_BASE_URL": "https://p.example/v1", "COPILOT_PROVIDER_TRANSPORT": "websockets"},
         {"COPILOT_PROVIDER_BASE_URL": f"{PROXY}/copilot/v1", "COPILOT_PROVIDER_TRANSPORT": "http"}),
        ("goose", {"OPENAI_HOST": "https://p.example"},
         {"OPENAI_HOST": f"{PROXY}/openai", "ANTHROPIC_HOST": f"{PROXY}/anthropic"}),
        ("crush", {}, {"OPENAI_API_ENDPOINT": f"{PROXY}/openai/v1", "ANTHROPIC_API_ENDPOINT": f"{PROXY}/anthropic",
                       "GEMINI_API_ENDPOINT": f"{PROXY}/google"}),
        ("copilot", {}, {}),
    ],
)  # fmt: skip
def test_agents_with_variables_of_their_own(machine, agent, environment, expected):
    """They get those, and no SDK's."""
    assert changed(machine, machine.plan(agent, **environment)) == expected


@pytest.mark.parametrize("own", ["variable", "option", "none"])
def test_droids_models_get_settings_of_this_run(machine, own):
    """The user's file stays, and so does whatever else a file of this run had."""
    models = [{"model": "m", "baseUrl": "https://p.example/v1", "apiKey": "k"}, {"model": "n"}]
    machine.write(".factory/settings.json", {"customModels": models})
    path = machine.write("own.json", {"theme": "x"})
    words = ["--settings", path] if own == "option" else []
    environment = {"FACTORY_RUNTIME_SETTINGS_PATH": path} if own == "variable" else {}
    launch = machine.plan("droid", *words, "exec", "x", **environment)
    written = launch.command[2] if own == "option" else launch.environment["FACTORY_RUNTIME_SETTINGS_PATH"]
    planned = json.loads(Path(written).read_text())
    moved = [{**models[0], "baseUrl": f"{PROXY}/droid/v1"}, models[1]]
    assert planned == ({} if own == "none" else {"theme": "x"}) | {"customModels": moved}
    assert launch.upstreams == {"droid": "https://p.example"}


@pytest.mark.parametrize(("agent", "path", "value"), [
    ("droid", ".factory/settings.json", {"customModels": [{"baseUrl": "https://p.example"}]}),
    ("qwen", ".qwen/settings.json", {"modelProviders": {"openai": [{"baseUrl": "https://p.example"}]}}),
])  # fmt: skip
def test_without_a_private_place_a_note_names_what_is_not_recorded(machine, agent, path, value):
    """The agent itself works as before."""
    machine.write(path, value)
    launch = machine.plan(agent, private=False)
    assert any("settings only" in note for note in launch.notes)
    assert not any(name.endswith("_PATH") for name in launch.environment)


@pytest.mark.parametrize("agent", ["cline", "pi", "kimi", "openclaw", "hermes", "amp"])
def test_agents_that_only_a_file_leads_are_named(machine, agent):
    """They get the SDKs' variables, which some of their providers read."""
    launch = machine.plan(agent)
    assert launch.environment["ANTHROPIC_BASE_URL"] == f"{PROXY}/anthropic"
    assert len(launch.notes) == 1


def test_sources_of_known_agents_exist():
    """A session on the wire names the source that reads the agent's own logs."""
    assert {agent.source for agent in AGENTS.values()} <= {*OURS}


# Files that cannot be trusted


SETTINGS = {
    "claude": [".claude/settings.json", "work/project/.claude/settings.json"],
    "codex": [".codex/config.toml", ".codex/auth.json"],
    "gemini": [".gemini/settings.json", "work/project/.env"],
    "qwen": [".qwen/settings.json", "work/project/.qwen/settings.json", ".qwen/.env"],
    "opencode": [".config/opencode/opencode.json", "opencode.json", ".local/share/opencode/auth.json"],
    "droid": [".factory/settings.json"],
}
HOSTILE = {
    "empty": b"",
    "not text": b"\xff\xfe\x00\x01",
    "half": b'{"env": {"ANTHROPIC_BASE_URL": "https://',
    "toml half": b'model_provider = "p"\n[model_providers.p',
    "a list": b"[1, 2]",
    "deep": b'{"a":' * 50_000,
    "deep toml": b"a = " + b"[" * 5_000,
    "deep toml keys": b".".join([b"a"] * 2_000) + b" = 1",
    "rather deep": b'{"env": {"ANTHROPIC_BASE_URL": "https://a.example"}, "a":' + b"[" * 900 + b"]" * 900 + b"}",
    "odd types": b'{"env": [], "provider": 7, "modelProviders": {"openai": {}}, "customModels": "x", "security": null}',
    "odd values": b'{"env": {"ANTHROPIC_BASE_URL": 7}, "provider": {"a": {"options": {"baseURL": {}}}}}',
    "toml odd": b'model_provider = 7\nmodel_providers = "x"\nopenai_base_url = []\nprofile = 3\nprofiles = 1',
    "long": b'{"a": "' + b"x" * (2 << 20) + b'"}',
    "open strings": b'{"a' + b'\\"' * 200_000,
    "open comments": b"/*" * 200_000,
    "blank": b" \n" * 200_000,
    "spaces": b"A=" + b" " * 200_000 + b"x",
    "commas": b"{" + b"," * 200_000,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(("agent", "paths"), SETTINGS.items(), ids=SETTINGS)
def test_settings_that_cannot_be_read_stop_nothing(machine, agent, paths, content):
    """The command is planned as without them, in linear time."""
    for path in paths:
        (machine.home / path).parent.mkdir(parents=True, exist_ok=True)
        (machine.home / path).write_bytes(content)
    launch = machine.plan(agent, "x")
    assert launch.command[-1] == "x"
    assert all(note.endswith(".") for note in launch.notes)


def test_an_unreadable_file_is_named(machine):
    """Requests may go where it leads."""
    path = machine.write(".claude/settings.json", "{")
    assert any(path in note for note in machine.plan("claude").notes)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no FIFO files")
def test_a_pipe_in_place_of_settings_is_not_waited_for(machine):
    """Only regular files are read."""
    (machine.home / ".claude").mkdir()
    os.mkfifo(machine.home / ".claude/settings.json")
    assert machine.plan("claude").environment["ANTHROPIC_BASE_URL"] == f"{PROXY}/anthropic"


@pytest.mark.parametrize("content", ["{", "7", "[" * 50_000])
def test_opencodes_variable_may_be_broken(machine, content):
    """Then it counts as empty."""
    launch = machine.plan("opencode", OPENAI_API_KEY="k", OPENCODE_CONFIG_CONTENT=content)
    assert providers_of(launch) == {"openai": f"{PROXY}/openai/v1"}
