"""The surroundings of a report: flags go before the environment, that before config.toml, that before the defaults."""

import os

import pytest


def names(ran):
    """The sessions that a list shows."""
    return {session["session"] for session in ran.json["rows"]}


def test_own_logs_are_in_the_state_folder(cli, home, record, monkeypatch, tmp_path):
    """`~/.local/state` unless XDG says otherwise; a relative XDG folder is no folder."""
    record(home / ".local/state/sessionlog/sessions", "at-home")
    record(tmp_path / "xdg/sessionlog/sessions", "by-xdg")
    assert names(cli("sessions", "--json")) == {"at-home"}
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert names(cli("sessions", "--json")) == {"by-xdg"}
    monkeypatch.setenv("XDG_STATE_HOME", "xdg")
    assert names(cli("sessions", "--json")) == {"at-home"}


def test_a_folder_by_name_environment_and_config_in_this_order(cli, record, config, monkeypatch, tmp_path):
    """A path goes before $SESSIONLOG_DIR, that before session_dir in config.toml, that before the state folder."""
    for name in ("named", "by-environment", "by-config"):
        record(tmp_path / name, name)
    config(f'session_dir = "{tmp_path}/by-config"')
    assert names(cli("sessions", "--json")) == {"by-config"}
    monkeypatch.setenv("SESSIONLOG_DIR", str(tmp_path / "by-environment"))
    assert names(cli("sessions", "--json")) == {"by-environment"}
    assert names(cli("sessions", "--json", tmp_path / "named")) == {"named"}
    assert cli("replay", "by-env").code == 0
    assert cli("routing-quality", "--json").json["total_requests"] == 1
    assert cli("check", "--json").json["files"][0]["path"].endswith("by-environment.jsonl")


def test_a_tilde_in_the_config_is_the_home_folder(cli, home, record, config):
    """`session_dir = "~/logs"`."""
    record(home / "logs", "s-tilde")
    config('session_dir = "~/logs"')
    assert names(cli("sessions", "--json")) == {"s-tilde"}


def test_another_config_file_by_environment(cli, config, monkeypatch, tmp_path, record):
    """$SESSIONLOG_CONFIG replaces the usual place, and the XDG folder moves it."""
    record(tmp_path / "usual", "usual")
    record(tmp_path / "other", "other")
    config(f'session_dir = "{tmp_path}/usual"', tmp_path / "xdg/sessionlog/config.toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert names(cli("sessions", "--json")) == {"usual"}
    path = config(f'session_dir = "{tmp_path}/other"', tmp_path / "mine.toml")
    monkeypatch.setenv("SESSIONLOG_CONFIG", str(path))
    assert names(cli("sessions", "--json")) == {"other"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello", "not TOML"),
        (
            "colour = 1",
            "unknown key 'colour'; known are aliases, budgets, currency, guard, ledger, prices, session_dir, timezone",
        ),
        ("session_dir = 3", "session_dir must be a string"),
        ("timezone = 3", "timezone must be a string"),
        ("prices = 3", "prices must be a table"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [["usage"], ["sessions"], ["routing-quality"], ["check"], ["pricing", "x"], ["replay", "x"]],
    ids=" ".join,
)
def test_a_wrong_config_exits_2_and_names_the_file(cli, config, command, text, says):
    """Nothing is reported from settings that were not understood."""
    path = config(text)
    ran = cli(*command)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"sessionlog: {path}: {says}")


def days(ran):
    """The days that a report knows."""
    return [row["day"] for row in ran.json["rows"]]


def test_a_zone_by_option_environment_and_config_in_this_order(cli, logs, config, monkeypatch):
    """23:30 in London is the next day in Berlin and Tokyo, and the same day in New York."""
    ask = ("usage", logs / "s-first.jsonl", "--by", "day", "--json")
    config('timezone = "Europe/Berlin"')
    assert days(cli(*ask)) == ["2026-11-20"]
    monkeypatch.setenv("SESSIONLOG_TZ", "America/New_York")
    assert days(cli(*ask)) == ["2026-11-19"]
    assert days(cli(*ask, "--tz", "Asia/Tokyo")) == ["2026-11-20"]


@pytest.mark.parametrize(("zone", "day"), [("Asia/Tokyo", "2026-11-20"), ("America/New_York", "2026-11-19")])
def test_without_a_zone_days_are_the_machines(process, logs, zone, day):
    """The machine's zone is the default."""
    assert days(process("usage", logs / "s-first.jsonl", "--by", "day", "--json", TZ=zone)) == [day]


def test_home_is_short_in_tables_and_long_in_data(cli, home, record, tmp_path):
    """`~` is for people."""
    record(tmp_path / "logs", "s-home", work_dir=str(home / "src"))
    assert "~/src" in cli("usage", tmp_path / "logs", "--by", "project").out
    [row] = cli("usage", tmp_path / "logs", "--by", "project", "--json").json["rows"]
    assert row["project"] == os.path.join(home, "src")
