"""What the reporting commands share: which logs, whose time, which prices, how far the scan is."""

import io
import sys
from types import SimpleNamespace

import pytest

from sessionlog.cli import reporting
from sessionlog.cli.reporting import scan_progress

NOW = "2026-11-21T12:00:00Z"
LISTS = ("usage", "sessions")


def names(ran):
    """The sessions that a list shows."""
    return {session["session"] for session in ran.json["rows"]}


def test_now_makes_a_report_reproducible(cli, logs):
    """The same present gives the same bytes; another one moves relative windows and ends what was running."""
    ask = ("sessions", logs, "--since", "1d", "--tz", "UTC")
    assert cli(*ask, "--now", NOW) == cli(*ask, "--now", NOW)
    assert names(cli(*ask, "--now", NOW, "--json")) == {"s-free"}
    assert names(cli(*ask, "--now", "2026-11-20T11:00:00Z", "--json")) == {"s-first", "s-failed"}
    statuses = [
        cli("sessions", logs / "s-free.jsonl", "--json", "--now", now).json["rows"][0]["status"]
        for now in (NOW, "2026-11-21T12:30:00+00:00")
    ]
    assert statuses == ["running", "unfinished"]


@pytest.mark.parametrize("command", LISTS)
def test_nothing_there_says_where_and_what_to_try(cli, home, command):
    """A first user gets the folder and three next steps, and no error."""
    ran = cli(command)
    assert ran.code == 0
    assert f"no sessions in {home}/.local/state/sessionlog/sessions yet" in ran.err
    assert "sessionlog demo" in ran.err
    assert "PATH" in ran.err
    assert "SESSIONLOG_DIR" in ran.err
    assert cli(command, "--since", "7d").err == ran.err


@pytest.mark.parametrize("command", LISTS)
def test_an_empty_folder_says_what_to_try(cli, tmp_path, command):
    """A folder that was named is named again."""
    ran = cli(command, tmp_path)
    assert ran.code == 0
    assert f"no sessions in {tmp_path}; `sessionlog check PATH` shows what is there" in ran.err


@pytest.mark.parametrize("command", LISTS)
@pytest.mark.parametrize(
    "narrow", [["--since", "2020-01-01..2020-02-01"], ["--model", "no-such-*"], ["--status", "lost"]]
)
def test_nothing_fits_is_said_apart_from_nothing_there(cli, logs, command, narrow):
    """There are sessions, only none that was asked for."""
    ran = cli(command, logs, *narrow)
    assert ran.code == 0
    assert f"no session in {logs} fits the time and the filters" in ran.err


@pytest.mark.parametrize("command", LISTS)
def test_notes_keep_out_of_json(cli, command):
    """An empty report is a document, too."""
    ran = cli(command, "--json")
    assert ran.json["schema"] == f"sessionlog.{command}/{2 if command == 'sessions' else 1}"
    assert "no sessions" in ran.err


def cost(ran):
    """The cost of the whole report."""
    return ran.json["totals"]["cost_usd"]


def test_own_prices_come_from_the_config_and_above_it_from_a_file(cli, logs, config, tmp_path):
    """A price of zero is free, not unknown; the spelling of a model has no capitals."""
    ask = ("usage", logs / "s-free.jsonl", "--json")
    assert cost(cli(*ask)) is None
    config('[prices."vllm/Qwen3.6-27B"]\ninput = 0\noutput = 0\n')
    assert cost(cli(*ask)) == 0
    above = tmp_path / "prices.toml"
    above.write_text('[prices."vllm/qwen3.6-27b"]\ninput = 1000\noutput = 0\n')
    assert cost(cli(*ask, "--prices", above)) == pytest.approx(0.8)
    above = tmp_path / "prices.json"
    above.write_text('{"vllm/qwen3.6-27b": {"input": 0, "output": 1000}}')
    assert cost(cli(*ask, "--prices", above)) == pytest.approx(0.2)


WRONG_PRICES = (
    ('["m"]\ninput = -1\noutput = 0', '"m".input is -1'),
    ('["m"]\ninput = nan\noutput = 0', '"m".input is nan'),
    ('["m"]\ninput = inf\noutput = 0', '"m".input is inf'),
    ('["m"]\ninput = "1"\noutput = 0', "\"m\".input is '1'"),
    ('["m"]\ninput = 1', '"m" has no output'),
    ('["m"]\ninput = 1\noutput = 1\ninptu = 1', "unknown key 'inptu'"),
    ("m = 3", '"m" is 3'),
    ("prices = 3", "expected a table of prices"),
    ("hello", "neither TOML nor JSON"),
)


@pytest.mark.parametrize("command", [["usage"], ["sessions"], ["pricing", "m"]], ids=" ".join)
@pytest.mark.parametrize(("text", "says"), WRONG_PRICES)
def test_a_wrong_price_exits_2_and_names_file_and_key(cli, tmp_path, command, text, says):
    """A typing error must not become a wrong cost."""
    path = tmp_path / "prices.toml"
    path.write_text(text)
    ran = cli(*command, "--prices", path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"sessionlog: {path}: ")
    assert says in ran.err


def test_a_wrong_price_in_the_config_names_the_config(cli, config, tmp_path):
    """Also when a file with right ones goes above it."""
    path = config('[prices."m"]\ninput = -1\noutput = 0\n')
    right = tmp_path / "prices.toml"
    right.write_text('["m"]\ninput = 1\noutput = 0\n')
    assert cli("usage", "--prices", right).err.startswith(f'sessionlog: {path}: prices."m".input is -1')


@pytest.mark.parametrize(("name", "code"), [("none.toml", 2), (".", 3)])
def test_a_price_file_that_cannot_be_read(cli, tmp_path, name, code):
    """A missing file is a typing error, a folder cannot be read."""
    ran = cli("usage", "--prices", tmp_path / name)
    assert (ran.code, ran.out) == (code, "")
    assert str(tmp_path / name) in ran.err


class _Watched(io.StringIO):
    """A stderr that a person watches."""

    def isatty(self):
        return True


def test_no_bar_where_nobody_watches(monkeypatch):
    """Stderr in a file stays clean."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with scan_progress() as progress:
        assert progress is None


@pytest.mark.parametrize(("seconds", "shown"), [(0.1, False), (0.9, True)])
def test_a_bar_for_long_scans_only(home, monkeypatch, seconds, shown):
    """It appears after half a second and is taken away at the end."""
    watched = _Watched()
    monkeypatch.setattr(sys, "stderr", watched)
    ticks = iter([0.0, seconds, seconds])
    monkeypatch.setattr(reporting, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    with scan_progress() as progress:
        progress(1, 40)
        progress(2, 40)
    said = watched.getvalue()
    assert ("reading logs" in said) is shown
    assert said.endswith("\x1b[2K") is shown


def test_a_bar_without_a_total_counts(home, monkeypatch):
    """Until the work is done."""
    watched = _Watched()
    monkeypatch.setattr(sys, "stderr", watched)
    ticks = iter([0.0, 0.9])
    monkeypatch.setattr(reporting, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    with scan_progress("reading") as progress:
        progress(1234, None)
    assert "1,234" in watched.getvalue()
    assert watched.getvalue().endswith("\x1b[2K")


def test_a_bar_is_gone_when_all_is_done(home, monkeypatch):
    """What follows may have a bar of its own, with its own word."""
    watched = _Watched()
    monkeypatch.setattr(sys, "stderr", watched)
    monkeypatch.setattr(reporting, "time", SimpleNamespace(monotonic=lambda: len(watched.getvalue()) or next(ticks)))
    ticks = iter([0.0, 0.9, 0.9])
    with scan_progress("sending") as progress:
        progress(1, 2)
        progress(2, 2)
        said = watched.getvalue()
        assert "sending" in said
        assert said.endswith("\x1b[2K")


@pytest.mark.parametrize("given", [True, False])
def test_logs_without_usage_are_told_apart_from_no_logs(cli, tmp_path, monkeypatch, given):
    """There are sessions, only nothing was used in them."""
    log = tmp_path / "logs" / "s.jsonl"
    log.parent.mkdir()
    log.write_text('{"session_id":"b","seq":0,"type":"session.start","ts":"2026-11-20T10:00:00Z"}\n')
    monkeypatch.setenv("SESSIONLOG_DIR", str(log.parent))
    ran = cli("usage", *([log.parent] if given else []))
    assert ran.code == 0
    assert ran.err == "1 session without a response is not counted: `sessionlog sessions` lists it\n"
