"""`sessionlog pricing`: which price applies, who says so, and what to do where there is none."""

import pytest


def test_a_listed_model_has_a_price_and_a_source(cli):
    """Per million tokens."""
    ran = cli("pricing", "claude-opus-4-5")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("anthropic/claude-opus-4-5\n  list price, genai-prices ")
    assert "USD per million tokens" in ran.out


def test_json_has_numbers(cli):
    """The same as one document."""
    price = cli("pricing", "claude-opus-4-5", "--json").json["rows"][0]
    assert (price["provider"], price["model"]) == ("anthropic", "claude-opus-4-5")
    assert 0 < price["cache_read_per_mtok"] < price["input_per_mtok"] < price["output_per_mtok"]


def test_a_model_without_a_price_exits_1_and_says_how_to_set_one(cli, home):
    """The words to write and the file to write them to."""
    ran = cli("pricing", "vllm/qwen3.6-27b")
    assert ran.code == 1
    assert f"{home}/.config/sessionlog/config.toml" in ran.out
    assert '[prices."vllm/qwen3.6-27b"]\ninput = 0\noutput = 0\n' in ran.out
    assert cli("pricing", "vllm/qwen3.6-27b", "--json").json["rows"] == []


def test_what_it_says_to_write_works(cli, home):
    """The proposed lines, written to the proposed file, are a price."""
    config = home / ".config/sessionlog/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(cli("pricing", "vllm/qwen3.6-27b").out.partition("\n\n")[2])
    ran = cli("pricing", "vllm/qwen3.6-27b")
    assert ran.code == 0
    assert "your price" in ran.out


def test_a_part_of_a_name_leads_to_the_list(cli):
    """`opus` is no model, but names contain it."""
    ran = cli("pricing", "opus")
    assert ran.code == 1
    assert "names contain it: try --list" in ran.err
    assert cli("pricing", "no-such-model").err == ""


def test_the_list_narrows_by_model_and_provider(cli):
    """A part of a name or a glob; the number of models stands in the title."""
    everything = cli("pricing", "--list")
    opus = cli("pricing", "--list", "opus", "--provider", "anthropic")
    assert (everything.code, opus.code) == (0, 0)
    title, _, heading, *lines, _, unit = opus.out.splitlines()
    assert title == f"Prices · {len(lines)} models"
    assert heading.split() == ["PROVIDER", "MODEL", "INPUT", "OUTPUT", "CACHED", "WRITTEN"]
    assert unit.startswith("US dollars per million tokens, below all tiers · genai-prices ")
    assert 2 < len(lines) < len(everything.out.splitlines())
    assert all(line.startswith("anthropic ") and "opus" in line for line in lines)
    glob = cli("pricing", "--list", "claude-opus-4-?", "--json")
    assert {price["model"][:-1] for price in glob.json["rows"]} == {"claude-opus-4-"}
    assert glob.err.startswith(f"{len(glob.json['rows'])} models · genai-prices ")


def test_a_list_of_nothing_exits_1(cli):
    """As for a single model without a price."""
    ran = cli("pricing", "--list", "no-such-model")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("0 models")


def test_the_price_of_another_day(cli):
    """A list price has a history, and the day since when it holds is said."""
    before, after = (
        cli("pricing", "openai/o3", "--at", at, "--json").json["rows"][0]
        for at in ("2025-06-01T00:00:00Z", "2025-07-01T00:00:00Z")
    )
    assert before["input_per_mtok"] > after["input_per_mtok"]
    assert after["valid_from"] == "2025-06-10"
    assert "  since 2025-06-10\n" in cli("pricing", "openai/o3").out


def test_a_time_that_is_none_exits_2(cli):
    """The form is named."""
    ran = cli("pricing", "claude-opus-4-5", "--at", "2025")
    assert (ran.code, ran.out) == (2, "")
    assert "--at '2025' is not an RFC 3339 time such as" in ran.err


@pytest.mark.parametrize("more", [[], ["--provider", "openai"], ["--json"]], ids=" ".join)
def test_no_model_exits_2(cli, more):
    """Unless all are asked for."""
    assert cli("pricing", *more) == (2, "", "sessionlog: name a MODEL, or list all with --list\n")


def test_an_alias_of_a_name_without_a_price_is_named(cli, config):
    """What is wrong is the alias, not that there is none."""
    config('[aliases]\n"mine" = "openai/none-of-these"\n')
    ran = cli("pricing", "mine")
    assert ran.code == 1
    assert ran.out.startswith("mine has no price: it is your alias of a name that has no price.\n")
