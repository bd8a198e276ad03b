"""Sentences on budgets, printed beside a table or a document: what is not known, and how to set a first one."""

from __future__ import annotations

from sessionlog.render.escape import one_line, terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sessionlog.analytics.budgets.report import BudgetReport

NAME = 30
"""Cells of a budget's name."""


def caveat_notes(report: BudgetReport) -> list[str]:
    """Return a sentence for each reason why amounts are incomplete, with the names of its budgets."""
    names_by_gap: dict[str, list[str]] = {}
    for one in report.rows:
        for gap in one.caveats:
            names_by_gap.setdefault(gap, []).append(one_line(one.state.name, NAME))
    total = len(report.rows)
    return [
        f"not all is known{'' if len(names) == total else ' of ' + ', '.join(names)}: {one_line(gap, 400)}"
        for gap, names in names_by_gap.items()
    ]


def no_budgets(config_path: str) -> Sequence[str]:
    """Return the lines that explain how to set a first budget."""
    from sessionlog.analytics.budgets.rules import EXAMPLE

    return (f"no budgets yet; a first one in {config_path} would be", "", *EXAMPLE.splitlines())


def render_sentences(sentences: Iterable[str], width: int) -> Iterator[str]:
    """Yield sentences as lines wrapped between words, escaped for a terminal."""
    from sessionlog.render.line import Line, wrap_lines

    for sentence in sentences:
        yield from (line.plain for line in wrap_lines([Line(terminal(sentence))], width)) if sentence else [""]
