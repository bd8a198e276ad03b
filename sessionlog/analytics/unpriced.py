"""Unpriced: the models of which a cost is unknown, why, and what to do about it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from sessionlog.analytics.columns import Column, counted
from sessionlog.analytics.models import COLUMNS as MODEL_COLUMNS
from sessionlog.analytics.models import ModelReport, ModelRow, models_of
from sessionlog.analytics.question import Question
from sessionlog.analytics.report import sum_fields, values_of
from sessionlog.analytics.sums import CLASSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    from sessionlog.analytics.question import Options, Paths

_STEPS = 5
_WHY = {
    "alias": "it is your alias of a name that has no price",
    "unnamed": "the log names no model",
    "local": "it was served by a model server of your own",
    "other_time": "it has a price, but none for the time of its requests",
    "other_unit": "the list has no price of its tokens",
    "unlisted": "no list has this name at this provider",
    "no_tokens": "the log has no token counts",
}
_NEXT = {
    "alias": 'name a listed model under [aliases] in config.toml: "{name}" = "vendor/model"',
    "local": "set its price in config.toml, 0 if it is free: [prices.{name}]",
    "other_time": "set its price in config.toml: [prices.{name}]",
    "other_unit": "set its price in config.toml: [prices.{name}]",
    "unlisted": 'if it is another name of a listed model, add {name} = "vendor/model" under [aliases] in config.toml;'
    " else set its price: [prices.{name}]",
}  # fmt: skip
"""Reason → the next step, where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpricedRow(ModelRow):
    """A model of which a cost is unknown.

    Attributes:
        reason: A word of `_WHY`.
    """

    reason: str = ""

    @property
    def why(self) -> str:
        """Why its cost is unknown."""
        return _WHY.get(self.reason, "")

    @property
    def next_step(self) -> str:
        """What to do about it; empty if nothing can be done."""
        name = json.dumps(f"{self.provider}/{self.model}", ensure_ascii=False)
        return _NEXT.get(self.reason, "").replace("{name}", name)


_OF_MODELS = {column.name: column for column in MODEL_COLUMNS}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpricedReport(ModelReport):
    """Models with requests of which the cost is unknown; `UsageReport` documents the other fields."""

    schema = "sessionlog.unpriced/1"
    title = "Models without a price"
    columns = (
        _OF_MODELS["requests"],
        Column("unpriced_requests", "count", "UNPRICED", 2, label="requests without a cost"),
        _OF_MODELS["total_tokens"],
        Column("why", "text", "WHY", least=24),
        Column("next_step", "text"),
    )
    total_row = False

    rows: tuple[UnpricedRow, ...] = ()
    totals: UnpricedRow = field(default_factory=lambda: UnpricedRow(keys={}))

    @property
    def is_empty(self) -> bool:
        """Never: no row is an answer, too."""
        return False

    @property
    def summary(self) -> str:
        """The number of models."""
        return counted(len(self.rows) + self.hidden_rows, self.thing) if self.rows else "every request has a cost"

    def footnotes(self) -> Iterator[str]:
        """Yield the next step for the first models."""
        steps = [f"{row.provider}/{row.model}: {row.next_step}" for row in self.rows if row.next_step]
        yield from steps[:_STEPS]
        if len(steps) > _STEPS:
            yield f"{len(steps) - _STEPS} more in --json"


def list_unpriced(paths: Paths = None, **options: Unpack[Options]) -> UnpricedReport:
    """List the models of which a cost is unknown, the most used first; options and errors as for `list_models`."""
    question = Question(paths=paths, **options)
    UnpricedReport().sorted_by(question.sort)  # report a wrong column before reading
    report = models_of(question)
    prices, only_without_tokens = question.price_book(), {*report.without_usage} - {*report.unpriced}

    def reason(name: tuple[str, str]) -> str:
        return "no_tokens" if name in only_without_tokens else prices.why_unpriced(*name)

    rows = [
        UnpricedRow(**values_of(row), reason=reason((row.provider, row.model)))
        for row in sorted(report.rows, key=lambda row: -row.unpriced_requests)
        if row.unknown_cost_sessions
    ]
    totals = UnpricedRow(keys={}, **sum_fields(rows, (*CLASSES, "requests", "unpriced_requests")))
    found = UnpricedReport(**values_of(report) | {"rows": tuple(rows), "totals": totals})
    return found.sorted_by(question.sort).limited(question.limit)
