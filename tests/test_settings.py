"""Settings: flags over environment over config.toml, in the places where each platform keeps such files."""

import os
import sys

import pytest

from sessionlog import settings
from sessionlog.errors import InvalidSettings, LogNotReadable
from sessionlog.settings import (
    config_home,
    data_home,
    ledger_file,
    load_settings,
    parse_prices,
    session_directory,
    state_home,
)

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="the paths of POSIX")


@pytest.fixture
def env(tmp_path):
    """The environment of somebody whose home is empty."""
    return {"HOME": str(tmp_path)}


def configure(tmp_path, content):
    folder = tmp_path / ".config" / "sessionlog"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@POSIX
def test_defaults(env, tmp_path):
    """Without a file and without variables everything has its usual place."""
    found = load_settings(env)
    assert found.session_dir == str(tmp_path / ".local/state/sessionlog/sessions")
    assert found.ledger_path == str(tmp_path / ".local/share/sessionlog/ledger.sqlite")
    assert found.config_path == str(tmp_path / ".config/sessionlog/config.toml")
    assert (found.timezone, found.prices) == (None, {})


@POSIX
@pytest.mark.parametrize(
    ("variable", "function", "default"),
    [
        ("XDG_STATE_HOME", state_home, ".local/state"),
        ("XDG_DATA_HOME", data_home, ".local/share"),
        ("XDG_CONFIG_HOME", config_home, ".config"),
    ],
)
def test_xdg_folders(env, tmp_path, variable, function, default):
    """An absolute path counts; a relative or empty one is ignored, as the specification says."""
    usual = str(tmp_path / default)
    assert function(env) == usual
    assert function(env | {variable: "/elsewhere"}) == "/elsewhere"
    assert function(env | {variable: "relative/path"}) == usual
    assert function(env | {variable: ""}) == usual


@POSIX
def test_without_home_the_users_home_is_asked_for(monkeypatch, tmp_path):
    """A daemon may have no HOME."""
    monkeypatch.setattr(settings.os.path, "expanduser", lambda path: path.replace("~", "/home/of/user"))
    assert state_home({}) == "/home/of/user/.local/state"


def test_windows_folders(monkeypatch):
    """There everything is below LOCALAPPDATA."""
    monkeypatch.setattr(sys, "platform", "win32")
    local = {"LOCALAPPDATA": os.path.join(os.sep, "Users", "u", "AppData", "Local")}
    assert state_home(local) == config_home(local) == data_home(local) == local["LOCALAPPDATA"]


@POSIX
def test_where_a_logger_writes(env):
    """SESSIONLOG_DIR, else below the state folder."""
    assert session_directory(env | {"SESSIONLOG_DIR": "/logs"}) == "/logs"
    assert session_directory(env | {"XDG_STATE_HOME": "/state"}) == "/state/sessionlog/sessions"
    assert session_directory(env | {"SESSIONLOG_DIR": "", "XDG_STATE_HOME": "/state"}) == "/state/sessionlog/sessions"


@POSIX
def test_where_the_ledger_is(env, tmp_path, monkeypatch):
    """SESSIONLOG_LEDGER, else `ledger` in the file, else below the folder for data."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ledger_file(env | {"XDG_DATA_HOME": "/data"}) == "/data/sessionlog/ledger.sqlite"
    assert load_settings(env | {"XDG_DATA_HOME": "/data"}).ledger_path == "/data/sessionlog/ledger.sqlite"
    configure(tmp_path, 'ledger = "~/book.sqlite"\n')
    assert load_settings(env).ledger_path == str(tmp_path / "book.sqlite")
    assert load_settings(env | {"SESSIONLOG_LEDGER": "~/mine.sqlite"}).ledger_path == str(tmp_path / "mine.sqlite")
    assert ledger_file(env | {"SESSIONLOG_LEDGER": "/mine.sqlite"}) == "/mine.sqlite"
    assert load_settings(env | {"SESSIONLOG_LEDGER": ""}).ledger_path == str(tmp_path / "book.sqlite")


def test_the_file_is_read(env, tmp_path):
    """Each key has its place."""
    configure(
        tmp_path,
        'session_dir = "/logs"\ntimezone = "Europe/Vienna"\n[prices."vllm/qwen"]\ninput = 0.5\n',
    )
    found = load_settings(env)
    assert (found.session_dir, found.timezone) == ("/logs", "Europe/Vienna")
    assert found.prices == {"vllm/qwen": {"input": 0.5}}


def test_aliases_are_prices_by_name(env, tmp_path):
    """Beside the others, for all that prices anything."""
    configure(tmp_path, '[aliases]\n"my-name" = "openai/gpt-5.5"\n[prices."vllm/qwen"]\ninput = 0.5\n')
    assert load_settings(env).prices == {"vllm/qwen": {"input": 0.5}, "my-name": "openai/gpt-5.5"}


def test_the_environment_wins(env, tmp_path):
    """A variable counts more than the file; an empty one counts nothing."""
    configure(tmp_path, 'session_dir = "/from/file"\ntimezone = "UTC"\n')
    found = load_settings(env | {"SESSIONLOG_DIR": "/from/env", "SESSIONLOG_TZ": "local"})
    assert (found.session_dir, found.timezone) == ("/from/env", "local")
    found = load_settings(env | {"SESSIONLOG_DIR": "", "SESSIONLOG_TZ": ""})
    assert (found.session_dir, found.timezone) == ("/from/file", "UTC")


def test_another_file(env, tmp_path):
    """SESSIONLOG_CONFIG names it; the usual one is not looked at."""
    configure(tmp_path, "nonsense")
    other = tmp_path / "other.toml"
    other.write_text('timezone = "UTC"\n')
    found = load_settings(env | {"SESSIONLOG_CONFIG": str(other)})
    assert (found.timezone, found.config_path) == ("UTC", str(other))


@POSIX
def test_a_tilde_is_the_home(env, tmp_path, monkeypatch):
    """In the file as in the environment."""
    monkeypatch.setenv("HOME", str(tmp_path))
    configure(tmp_path, 'session_dir = "~/logs"\n')
    assert load_settings(env).session_dir == str(tmp_path / "logs")
    assert load_settings(env | {"SESSIONLOG_DIR": "~/other"}).session_dir == str(tmp_path / "other")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("this is not TOML", "not TOML"),
        (b"\xff", "not TOML"),
        ("budgets = " + "[" * 5000, "not TOML"),
        (
            "sesion_dir = 'x'",
            "unknown key 'sesion_dir'; known are aliases, budgets, currency, guard, ledger, prices, session_dir, timezone",
        ),
        ("session_dir = 5", "session_dir must be a string"),
        ("ledger = 5", "ledger must be a string"),
        ("timezone = ['UTC']", "timezone must be a string"),
        ("prices = 'cheap'", "prices must be a table"),
        ("aliases = 'mine'", "aliases must be a table"),
        ("[aliases]\nmine.one = 'a/b'", r'aliases\."mine" must be a string, "vendor/model"; quote a key with a dot'),
        ("[aliases]\nm = 'a/b'\n[prices.m]\ninput = 1", '"m" has a price and an alias; remove one of them'),
    ],
)
def test_a_file_that_cannot_be_used(env, tmp_path, content, said):
    """The error names the file and what is wrong with it."""
    path = configure(tmp_path, content)
    with pytest.raises(InvalidSettings, match=said) as caught:
        load_settings(env)
    assert str(caught.value).startswith(f"{path}: ")
    assert isinstance(caught.value, ValueError)


def test_an_empty_file_is_a_file(env, tmp_path):
    """Nothing in it, nothing wrong with it."""
    configure(tmp_path, "# nothing yet\n")
    assert load_settings(env).prices == {}


def test_a_folder_in_the_files_place(env, tmp_path):
    """It cannot be read, and says so."""
    (tmp_path / ".config" / "sessionlog" / "config.toml").mkdir(parents=True)
    with pytest.raises(LogNotReadable, match="not a regular file"):
        load_settings(env)


def test_the_processes_environment_by_default(tmp_path, monkeypatch):
    """Without a mapping the process is asked."""
    monkeypatch.setenv("SESSIONLOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setenv("SESSIONLOG_CONFIG", str(tmp_path / "none.toml"))
    assert load_settings().session_dir == str(tmp_path / "logs")


def test_settings_are_a_value(env):
    """Nobody changes them after the start."""
    with pytest.raises(AttributeError):
        load_settings(env).timezone = "UTC"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("p.toml", b'["vllm/qwen"]\ninput = 0.5\n'),
        ("p.toml", b'[prices."vllm/qwen"]\ninput = 0.5\n'),
        ("p.toml", b'\xef\xbb\xbf["vllm/qwen"]\ninput = 0.5\n'),
        ("p.json", b'{"vllm/qwen": {"input": 0.5}}'),
        ("p.json", b'{"prices": {"vllm/qwen": {"input": 0.5}}}'),
    ],
)
def test_a_file_of_prices(path, content):
    """TOML or JSON, with or without the table's name."""
    assert parse_prices(path, content) == {"vllm/qwen": {"input": 0.5}}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("p.toml", b"[["),
        ("p.json", b"{"),
        ("p.json", b"[1]"),
        ("p.json", b"\xff"),
        ("p.toml", b"prices = 5"),
        ("p.toml", b"prices = " + b"[" * 5000),
        ("p.json", b"[" * 100_000),
    ],
)
def test_a_file_of_prices_that_cannot_be_used(path, content):
    """The error names the file."""
    with pytest.raises(InvalidSettings, match="^" + path):
        parse_prices(path, content)
