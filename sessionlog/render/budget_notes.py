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
    return gap_notes([(one_line(one.state.name, NAME), one.caveats) for one in report.rows])


def gap_notes(gaps: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return a sentence for each reason; `gaps` has (name, reasons) of every budget."""
    names_by_gap: dict[str, list[str]] = {}
    for name, reasons in gaps:
        for reason in reasons:
            names_by_gap.setdefault(reason, []).append(name)
    return [
        f"not all is known{'' if len(names) == len(gaps) else ' of ' + ', '.join(names)}: {one_line(reason, 400)}"
        for reason, names in names_by_gap.items()
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
