"""Money in another currency: by a rate of the user's own, in all that people read and in nothing that programs read."""

import json
from contextvars import copy_context

import pytest

from sessionlog.errors import InvalidSettings
from sessionlog.render.currency import Currency, currency, parse_currency, show_money_in
from sessionlog.render.numbers import cost_text, price_text

EUR = '[currency]\ncode = "EUR"\nrate = 0.5\ndate = "2026-11-20"\n'
NOTE = "€: 0.5 EUR for a US dollar, your rate of 2026-11-20 in config.toml"


def texts(chosen, *amounts, text=cost_text):
    """Amounts as they are shown in a currency."""

    def shown():
        show_money_in(chosen)
        return [text(amount) for amount in amounts]

    return copy_context().run(shown)


def test_amounts_are_converted_before_they_are_rounded():
    """Signs stand where they always do; a currency without one has its code."""
    assert texts(Currency("EUR", 0.5), 2469.0, 0.062) == ["€1,234.50", "€0.031"]
    assert texts(Currency("CHF", 2.0), 1.0) == ["CHF 2.00"]


def test_edges_keep_their_marks():
    """Nothing, less than the last digit, a loss, an estimate, and what is unknown."""
    assert texts(Currency("EUR", 0.5), 0, 1e-9, -3, None) == ["€0", "<€0.000001", "-€1.50", "–"]
    assert cost_text(-1e-9, estimated=True) == "~-<$0.000001"


def test_prices_stay_in_dollars():
    """They are those of a list."""
    assert texts(Currency("EUR", 0.5), 3, text=price_text) == ["$3.00"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"code": "EUR"}, "rate is None"),
        ({"rate": 1.0}, "code is None"),
        ({"code": "euro", "rate": 1.0}, "code is 'euro'"),
        ({"code": "EUR", "rate": 0}, "rate is 0"),
        ({"code": "EUR", "rate": True}, "rate is True"),
        ({"code": "EUR", "rate": float("inf")}, "rate is inf"),
        ({"code": "EUR", "rate": 10**400}, "rate is 1000"),
        ({"code": "USD", "rate": 2}, "a US dollar is one US dollar"),
        ({"code": "EUR", "rate": 1, "fetch": True}, "unknown key 'fetch'"),
    ],
)
def test_what_is_no_currency_is_refused_by_name(table, words):
    """With the file's name first."""
    with pytest.raises(InvalidSettings, match=rf"^config\.toml: .*{words}"):
        parse_currency(table, place="config.toml")


def test_no_table_is_dollars():
    """And says nothing of a rate."""
    assert (parse_currency({}, place="").note, currency().code) == ("", "USD")


@pytest.fixture
def euros(home):
    """Settings with a currency."""
    path = home / ".config/sessionlog/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(EUR, "utf-8")


@pytest.mark.parametrize("command", ["usage", "models", "sessions", "blocks", "calendar", "daily"])
def test_tables_are_in_it(euros, cli, logs, command):
    """With the rate below."""
    text = cli(command, logs).out
    assert NOTE in text
    assert "€" in text.replace(NOTE, "")
    assert "$" not in text.replace("IN/M, OUT/M: US", "") or command == "models"


def test_programs_get_dollars(euros, cli, logs, home):
    """JSON and CSV are what they are without settings."""
    found = [cli("usage", logs, form).out for form in ("--json", "--csv")]
    (home / ".config/sessionlog/config.toml").unlink()
    assert found == [cli("usage", logs, form).out for form in ("--json", "--csv")]
    assert json.loads(found[0])["totals"]["cost_usd"] is not None


def test_it_ends_with_the_command(euros, cli, logs, home):
    """The next one has settings of its own."""
    cli("usage", logs)
    assert currency().code == "USD"
    (home / ".config/sessionlog/config.toml").unlink()
    assert "€" not in cli("usage", logs).out


def test_a_mistake_is_a_sentence(cli, logs, home):
    """And an exit code."""
    path = home / ".config/sessionlog/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('[currency]\ncode = "EUR"\n', "utf-8")
    ran = cli("usage", logs)
    assert (ran.code, ran.out) == (2, "")
    assert f"{path}: [currency] rate is None" in ran.err


def test_one_session_is_in_it_too(euros, cli, logs):
    """Its status, its turns and its line; the exact text stays as it is."""
    log = str(logs / "s-failed.jsonl")
    assert "€" in cli("status", log).out
    assert "€" in cli("status", log, "--line").out
    assert "€" not in cli("replay", log, "--plain").out
