"""P11: time is not trusted. Reports over a log whose clock went back, stood still, or was beside itself."""

import json

import pytest

from sessionlog.logger.session_logger import SessionLogger

DAY = 86_400_000_000_000
NOW = 1_795_255_200_000_000_000  # 2026-11-21T10:00:00Z
STAMPS = {
    "back by a day": lambda n: NOW - n * DAY,
    "back by a second": lambda n: NOW - n * 10**9,
    "there and back": lambda n: NOW + (-1) ** n * DAY,
    "standing still": lambda n: NOW,
    "the epoch in between": lambda n: 0 if n % 2 else NOW,
    "beyond the calendar": lambda n: (-1) ** n * 10**25,
}
REPORTS = (
    ["sessions", "--json"], ["usage", "--json", "--by", "session"], ["tools", "--json"], ["blocks", "--json"],
    ["routing-quality", "--json"], ["replay", "--json"], ["context", "--json"], ["check", "--json"], ["status", "--json"],
)  # fmt: skip
_TIMES = ("duration", "latency", "elapsed", "_ms", "_seconds", "age", "length")


@pytest.fixture(params=STAMPS)
def log(request, tmp_path):
    """A whole session of two requests and a tool."""
    stamps = map(STAMPS[request.param], range(1000))
    with SessionLogger(
        tmp_path / "logs", "s", model="claude-opus-4-5", work_dir="/w", clock=lambda: next(stamps)
    ) as log:
        for n in range(2):
            log.llm_request([{"role": "user", "content": f"number {n}"}])
            log.llm_response(f"answer {n}", usage={"input": 10, "output": 3}, latency_ms=5.0)
        with log.tool_call("bash"):
            pass
    return log.path


def numbers(value, path=""):
    """(path, number) of each number in a document whose name says that it is a time that passes."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner, path)
    elif isinstance(value, int | float) and any(word in path.rpartition(".")[2] for word in _TIMES):
        yield path, value


@pytest.mark.parametrize("report", REPORTS, ids=" ".join)
def test_p11_no_duration_is_negative(cli, log, report):
    """Whatever the clock did, each report is made, and no time that passed is below zero."""
    command, *options = report
    timed = (
        ["--now", "2026-11-21T12:00:00Z"]
        if command in {"sessions", "usage", "tools", "blocks", "routing-quality", "status"}
        else []
    )
    ran = cli(command, log, *options, *timed)
    assert ran.code in {0, 1}, ran.err
    documents = [json.loads(line) for line in ran.out.splitlines()] if command == "replay" else [ran.json]
    found = [pair for document in documents for pair in numbers(document)]
    assert [pair for pair in found if pair[1] < 0] == []


@pytest.mark.parametrize("plain", [["sessions"], ["replay", "--plain"], ["tools"], ["blocks", "--gaps"]], ids=" ".join)
def test_p11_no_table_shows_a_negative_time(cli, log, plain):
    """Nor do the tables for people."""
    command, *options = plain
    ran = cli(command, log, *options)
    assert ran.code in {0, 1}
    words = ran.out.replace("│", " ").split()
    assert [word for word in words if word.startswith(("-", "−")) and word[1:2].isdigit()] == []


def test_p11_the_order_is_that_of_the_file(cli, log):
    """A conversation is shown as it was written, not sorted by its times."""
    shown = cli("replay", log, "--plain").out
    places = [shown.index(f"{word} {n}") for n in range(2) for word in ("number", "answer")]
    assert places == sorted(places)


def test_p11_a_clock_that_goes_back_is_named(cli, tmp_path):
    """By check, as something worth knowing and no damage."""
    stamps = map(STAMPS["back by a day"], range(100))
    with SessionLogger(tmp_path, "s", work_dir="/w", clock=lambda: next(stamps)) as log:
        log.emit("tool.call", {})
    ran = cli("check", log.path, "--notes")
    assert ran.code == 0
    assert "clock_back" in ran.out
