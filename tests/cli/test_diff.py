"""`sessionlog diff`: two sessions by path or id, in two forms, and an exit code that scripts can ask."""

import pytest

NOW = ("--now", "2026-11-21T12:00:00Z")


@pytest.fixture
def two(logs, record):
    """Two logs that say the same, and one that does not."""
    other = record(logs, "s-other", prompt="something else")
    text = other.read_text("utf-8").replace("Done.", "Not done.")
    other.write_text(text, "utf-8")
    return logs / "s-first.jsonl", logs / "s-failed.jsonl", other


def test_sessions_that_say_the_same_exit_0(cli, two):
    """Though model, cost and time are others, which the figures show."""
    ran = cli("diff", *two[:2], *NOW)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("No difference · 2 messages alike\n")
    assert "gpt-5.3-codex" in ran.out


def test_sessions_that_differ_exit_1(cli, two):
    """And where they part is shown."""
    ran = cli("diff", two[0], two[2], *NOW)
    assert (ran.code, ran.err) == (1, "")
    assert "THEY DIVERGE AT MESSAGE 2" in ran.out


def test_a_session_is_equal_to_itself(cli, two):
    """By path and by id."""
    assert cli("diff", two[0], two[0]).code == 0
    assert cli("diff", "s-first", two[0], "--dir", two[0].parent).code == 0


def test_ids_are_those_of_replay(cli, two, monkeypatch):
    """The beginning of one is enough; several matches are refused, and none."""
    monkeypatch.setenv("SESSIONLOG_DIR", str(two[0].parent))
    assert cli("diff", "s-fi", "s-o").code == 1
    ambiguous = cli("diff", "s-f", "s-o")
    assert (ambiguous.code, ambiguous.out) == (2, "")
    missing = cli("diff", "s-first", "s-x")
    assert (missing.code, missing.out) == (3, "")
    assert "s-x" in missing.err


def test_one_argument_is_wrong_usage(cli, two):
    """Two sessions are compared."""
    assert cli("diff", two[0]).code == 2


def test_json_is_one_document(cli, two):
    """With the same exit code."""
    ran = cli("diff", two[0], two[2], "--json", *NOW)
    assert ran.code == 1
    assert (ran.json["schema"], ran.json["equal"]) == ("sessionlog.diff/1", False)
    [changed] = ran.json["messages"]
    assert (changed["left"]["text"], changed["right"]["text"]) == ("Done.", "Not done.")
    assert cli("diff", two[0], two[1], "--json").json["equal"] is True


def test_damage_is_noted(cli, damaged):
    """Beside data on stderr, in the table in a line of its own."""
    table = cli("diff", damaged / "s-first.jsonl", damaged / "s-failed.jsonl")
    assert "1 damaged piece skipped (s-failed.jsonl:2)" in table.out
    data = cli("diff", damaged / "s-first.jsonl", damaged / "s-failed.jsonl", "--json")
    assert "1 damaged piece skipped" in data.err
    assert data.json["problems"]["count"] == 1


def test_own_prices_count(cli, two, tmp_path):
    """As for every report."""
    prices = tmp_path / "prices.toml"
    prices.write_text('[prices."anthropic/claude-opus-4-5"]\ninput = 0\noutput = 0\n')
    ran = cli("diff", two[0], two[0], "--json", "--prices", prices)
    assert ran.json["left"]["cost_usd"] == 0


def test_a_log_that_is_gone_is_read_from_the_archive(cli, home, record):
    """And called by the path that it had."""
    folder = home / ".local/state/sessionlog/sessions"
    path = record(folder, "s-old", start="2026-10-01T10:00:00Z")
    record(folder, "s-new")
    assert cli("archive", "--older-than", "1d", "--now", "2026-12-24T10:00:00Z").code == 0
    path.unlink()
    ran = cli("diff", "s-old", "s-new", "--json")
    assert ran.code == 0
    assert f"{path} is gone" in ran.err
    assert ran.json["left"]["path"] == str(path)
    assert ran.json["left"]["session"] == "s-old"


def test_two_agents_can_be_compared(cli, two, tmp_path):
    """A session of another agent's beside one of ours."""
    path = tmp_path / "rollout-2026-11-10T10-00-00-019a0000-0001-7000-8000-000000000001.jsonl"
    path.write_text(
        '{"timestamp":"2026-11-10T10:00:00Z","type":"session_meta","payload":{"id":"019a0000-0001-7000-8000-000000000001"}}\n'
        '{"timestamp":"2026-11-10T10:00:01Z","type":"event_msg","payload":{"type":"user_message","message":"hi"}}\n'
    )
    ran = cli("diff", path, two[0])
    assert ran.code == 1
    assert "≠  agent" in ran.out


def test_a_gate_that_fails_exits_1_with_the_reason(cli, two):
    """Also for sessions that are equal; the others are listed as passed."""
    ran = cli("diff", two[0], two[0], "--max-requests", "0", "--same-tools", *NOW)
    assert ran.code == 1
    assert "FAILED  max-requests 0: requests of B: 1, allowed 0\npassed  same-tools\n" in ran.out


def test_with_gates_a_difference_alone_exits_0(cli, two):
    """The sessions differ, and keep their limits."""
    ran = cli("diff", two[0], two[2], "--max-requests", "+2", "--max-tokens", "+10%", *NOW)
    assert (ran.code, "THEY DIVERGE" in ran.out) == (0, True)


def test_no_gate_passes_on_a_damaged_log(cli, two, tmp_path):
    """What cannot be read may be what exceeds it; a damaged first log makes limits stricter at most."""
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(two[0].read_bytes() + b"{broken\n")
    ran = cli("diff", two[0], damaged, "--max-requests", "+2", "--same-tools", *NOW)
    assert ran.code == 1
    reason = "the log of B is damaged, so a part of it is not known"
    assert f"FAILED  max-requests +2: {reason}\nFAILED  same-tools: {reason}\n" in ran.out
    assert cli("diff", damaged, two[0], "--max-requests", "+2", "--same-tools", *NOW).code == 0


def test_gates_are_in_the_json(cli, two):
    """With the figures of both, and null for what is not known."""
    ran = cli("diff", two[0], two[0], "--max-requests=-1", "--json", *NOW)
    assert (ran.code, ran.json["equal"]) == (1, True)
    assert ran.json["gates"] == [
        {
            "gate": "max-requests",
            "limit": "-1",
            "passed": False,
            "left": 1,
            "right": 1,
            "allowed": 0.0,
            "reason": "requests of B: 1, allowed 0 (A: 1)",
        }
    ]


def test_a_limit_that_is_none_is_wrong_usage(cli, two):
    """The message has the forms."""
    ran = cli("diff", two[0], two[0], "--max-cost", "10%", *NOW)
    assert (ran.code, ran.out) == (2, "")
    assert "--max-cost '10%': a limit is given as 0.50, +10% or +0.05" in ran.err
