"""The views' words: those of the reports, each once and explained."""

import pytest

from sessionlog.analytics import sessions, usage_row
from sessionlog.analytics.columns import names_of
from sessionlog.analytics.sql.views import SESSIONS, USAGE, VIEWS


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_columns_are_named_once_and_explained(view):
    """Nothing is left for the reader to guess."""
    assert len(set(view.column_names)) == len(view.columns)
    assert all(column.description for column in view.columns)


def test_tokens_and_money_are_called_as_in_reports():
    """One word for one thing."""
    sums = {name for name in names_of(usage_row.COLUMNS) if name.endswith(("_tokens", "_usd"))}
    assert sums <= set(USAGE.column_names)
    assert set(names_of(sessions.COLUMNS)) <= set(SESSIONS.column_names)
