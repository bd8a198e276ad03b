"""Where a reading differs from the truth today: the one table, by check.

A deviation of the kind `to mend` is an expected failure that must fail: whoever mends it removes its entry. One of the
kind `not in the log` is a truth that no reading can find; a test proves it by the bytes of the home.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest

from tests.real.data import HOMES, VARIABLE, home_names, is_here

SEEN = "2026-11-22"
MEND, NOT_LOGGED = "to mend", "not in the log"


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """One way in which readings of some homes are not the truth.

    Attributes:
        finding: The number of the finding it belongs to; empty for none.
        homes: Patterns of home names.
        checks: The checks that fail: the names given to `every_home`, or names of tests of findings.
        reason: One sentence.
        kind: Whether a reading can do better.
        absent: A regular expression that no byte of the homes matches; only for what is not in the log.
        logs: The names of the files that `absent` is searched in.
        date: When it was seen.
    """

    finding: str
    homes: tuple[str, ...]
    checks: tuple[str, ...]
    reason: str
    kind: str = MEND
    absent: str = ""
    logs: str = "*"
    date: str = SEEN

    def is_of(self, home: str) -> bool:
        """Whether a home is meant."""
        return any(fnmatchcase(home, pattern) for pattern in self.homes)

    @property
    def sentence(self) -> str:
        """The reason as a report shows it."""
        return f"{self.finding or self.kind} ({self.date}): {self.reason}"


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        finding="", kind=NOT_LOGGED, homes=("kimi", "kimicode"), checks=("reasoning",),
        reason="The client does not log reasoning tokens.",
        absent=r'(reasoning|thinking|thought)\w*"\s*:\s*\d',
    ),
    Deviation(  # the check is named here once the agent is read; its event bus, which is no session log, has some counts
        finding="", kind=NOT_LOGGED, homes=("cline",), checks=("reasoning",), logs="*.messages.json",
        reason="The client does not log reasoning tokens in its sessions.",
        absent=r'(reasoning|thinking|thought)\w*"\s*:\s*\d',
    ),
    Deviation(  # the same
        finding="", kind=NOT_LOGGED, homes=("droid",), checks=("reasoning",), logs="*.settings.json",
        reason="The client logs the reasoning of one API alone: that of requests 7 and 8, 27 + 28.",
        absent=r'thinkingTokens"\s*:\s*(?!0\b|55\b)\d',
    ),
    Deviation(
        finding="", kind=NOT_LOGGED, homes=("cline",), checks=("failed_models",), logs="*x1mcr*.messages.json",
        reason="The session that failed has asked another model and never reached the stub.",
        absent=r"stub-large",
    ),
    Deviation(
        finding="", kind=NOT_LOGGED, homes=("droid",), checks=("failed_models",),
        reason="The log names the user's alias of a model alone.",
        absent=r'"model(Id)?"\s*:\s*"stub-large',
    ),
    Deviation(
        finding="", kind=NOT_LOGGED, homes=("claude-1.*", "claude-2.0.*"), checks=("failed_models",),
        reason="A failed request's row names `<synthetic>`, and no other row of its session a model.",
        absent=r'"Refused\. STEPS.*"model"\s*:\s*"claude',
    ),
    Deviation(
        finding="", kind=NOT_LOGGED, homes=("llm",), checks=("providers",),
        reason="The log names the model alone, and this one is in no price list.",
        absent=r'"provider"|[a-z]+/stub-large',
    ),
    Deviation(
        finding="", kind=NOT_LOGGED, homes=("gemini-0.4.*",), checks=("latency",),
        reason="Calls of tools and their results are not logged, so nothing tells when the next request was sent.",
        absent=r"toolCall|functionCall|functionResponse|call_stub",
    ),
    Deviation(
        finding="", kind=NOT_LOGGED, homes=("codex-0.20.*",), checks=("statuses",),
        reason="The log does not say how a turn ended.",
        absent=r"task_complete|turn_aborted|end_turn",
    ),
)  # fmt: skip


def every_home(check: str) -> pytest.MarkDecorator:
    """Run a test for every home, with its reading; one skipped test without homes."""
    if not is_here():
        mark = pytest.mark.skip(reason=f"{VARIABLE} is not set: {HOMES} homes not compared ({check})")
        return pytest.mark.parametrize("reading", [pytest.param("", marks=mark, id=f"{HOMES}-homes")], indirect=True)
    params = [pytest.param(name, marks=expected_of(name, check), id=name) for name in home_names()]
    return pytest.mark.parametrize("reading", params, indirect=True)


def deviating(test: str) -> pytest.MarkDecorator:
    """Mark a test of a finding: it must fail while the table names it."""
    reasons = [deviation.sentence for deviation in DEVIATIONS if test in deviation.checks]
    return pytest.mark.xfail(bool(reasons), reason="; ".join(reasons), strict=True)


def unlogged() -> Iterator[tuple[str, Deviation]]:
    """Every home with each truth that it does not hold."""
    for deviation in DEVIATIONS:
        if deviation.kind == NOT_LOGGED:
            yield from ((name, deviation) for name in home_names() if deviation.is_of(name))


def expected_of(home: str, check: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a check of one home: expected to fail where the table says so."""
    reasons = [one.sentence for one in DEVIATIONS if check in one.checks and one.is_of(home)]
    return [pytest.mark.xfail(reason="; ".join(reasons), strict=True)] if reasons else []
