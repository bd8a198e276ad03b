"""Models: the usage of each, its list price, and its share of all cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sessionlog.analytics.columns import Column, counted
from sessionlog.analytics.question import Question, answer
from sessionlog.analytics.report import values_of
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.usage import fold_usage
from sessionlog.analytics.usage_row import COLUMNS as USAGE_COLUMNS
from sessionlog.analytics.usage_row import UsageReport, UsageRow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Unpack

    from sessionlog.analytics.question import Options, Paths
    from sessionlog.pricing.book import PriceBook

_BY = ("provider", "model")
_PER_MILLION = "US dollars per million tokens now, without tiers; `sessionlog pricing MODEL` has all"
_OF_USAGE = {column.name: column for column in USAGE_COLUMNS}


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentPrice:
    """What a model costs now, below all tiers.

    Attributes:
        input_usd: US dollars per million input tokens that touch no cache; None if unknown.
        output_usd: US dollars per million output tokens; None if unknown.
        source: The source of the price; "" if it is unknown.
    """

    input_usd: float | None = None
    output_usd: float | None = None
    source: str = ""


def current_price(prices: PriceBook, provider: str, model: str) -> CurrentPrice:
    """Return what a model costs now at these prices."""
    info = prices.explain(provider, model)
    if info is None:
        return CurrentPrice()
    pricing = info.pricing
    return CurrentPrice(input_usd=pricing.input_per_mtok, output_usd=pricing.output_per_mtok, source=info.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow(UsageRow):
    """A model's usage and price.

    Attributes:
        price: Its current price.
        selected_nano: The cost of all models in the selection; None where none is known.
    """

    price: CurrentPrice = field(default_factory=CurrentPrice)
    selected_nano: int | None = None

    @property
    def input_usd_per_mtok(self) -> float | None:
        """US dollars per million input tokens that touch no cache."""
        return self.price.input_usd

    @property
    def output_usd_per_mtok(self) -> float | None:
        """US dollars per million output tokens."""
        return self.price.output_usd

    @property
    def price_source(self) -> str:
        """The source of the price; empty if the price is unknown."""
        return self.price.source

    @property
    def cost_share(self) -> float | None:
        """Known cost here ÷ known cost of all models in the selection."""
        return None if self.cost_nano is None or not self.selected_nano else self.cost_nano / self.selected_nano


COLUMNS = (
    *(_OF_USAGE[name] for name in (
        "sessions", "requests", "input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens",
        "total_tokens",
    )),
    Column("input_usd_per_mtok", "price", "IN/M", 3, label="input price", note=_PER_MILLION),
    Column("output_usd_per_mtok", "price", "OUT/M", 2, label="output price", note=_PER_MILLION),
    Column("price_source", "text"),
    *(_OF_USAGE[name] for name in ("known_cost_usd", "estimated_cost_usd", "cost_usd")),
    Column("cost_share", "share", "SHARE", 1, label="share of cost"),
    *(_OF_USAGE[name] for name in (
        "cache_hit_rate", "cache_savings_usd", "generation_tokens_per_second", "latency_p50_ms",
    )),
)  # fmt: skip
"""The columns after provider and model, in the order of JSON, CSV and tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport(UsageReport):
    """Models, the costliest first; `UsageReport` documents the other fields."""

    schema = "sessionlog.models/1"
    title = "Models"
    thing = "model"
    columns = COLUMNS
    table = ()

    group_by: tuple[str, ...] = _BY
    rows: tuple[ModelRow, ...] = ()
    totals: ModelRow = field(default_factory=lambda: ModelRow(keys={}))

    @property
    def summary(self) -> str:
        """The number of models and of sessions."""
        models = counted(len(self.rows) + self.hidden_rows, self.thing)
        return f"{models} in {counted(self.totals.sessions, 'session')}"


def list_models(paths: Paths = None, **options: Unpack[Options]) -> ModelReport:
    """List the models that were used, the costliest first; options and errors as for `aggregate_usage`, but `by`."""
    question = Question(paths=paths, **options)
    ModelReport().sorted_by(question.sort)  # report a wrong column before reading
    return models_of(question).sorted_by(question.sort).limited(question.limit)


def models_of(question: Question) -> ModelReport:
    """Return all models that were used, whatever order and limit the question has."""
    selection = replace(question, by=None).selection(Selection, _BY)

    usage = answer(question, lambda book: fold_usage(book, selection), cuts=selection.cuts(), with_calls=False)
    prices = question.price_book()

    def priced(row: UsageRow, price: CurrentPrice) -> ModelRow:
        return ModelRow(**values_of(row), price=price, selected_nano=usage.totals.cost_nano)

    rows = tuple(priced(row, current_price(prices, row.provider, row.model)) for row in usage.rows)
    priced_rows = {"rows": rows, "totals": priced(usage.totals, CurrentPrice())}
    return ModelReport(**values_of(usage) | priced_rows)
