"""What tests of budgets share."""

import pytest

from sessionlog.ledger import keep_open
from tests.analytics.budgets.budget_world import CONFIG, World


@pytest.fixture
def world(tmp_path):
    """A machine whose one price is that of a dollar a token."""
    made = World(tmp_path)
    made.configure(CONFIG)
    yield made
    for one in list(keep_open._open):  # Python 3.13 warns of what is left to the garbage collector
        one.close()
