"""CurrentBook: a ledger that is up to date, so that what the last sync kept of sources and prices still holds."""

from __future__ import annotations

from sessionlog.ledger.freshness import known_agents
from sessionlog.ledger.reading import ReadBook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionlog.ledger.agents import Agent
    from sessionlog.ledger.current_prices import CurrentPrices


class CurrentBook(ReadBook):
    """A `ReadBook` of a ledger to which nothing has to be added."""

    def current_prices(self) -> CurrentPrices:
        """Return what models cost now; none for a model whose price has changed since the last sync."""
        from sessionlog.ledger.current_prices import read_current_prices

        return read_current_prices(self.connection)

    def agents(self, env: Mapping[str, str]) -> Sequence[Agent]:
        """Return the agents whose logs can be read; none if they have to be described again."""
        return known_agents(self.connection, env)
