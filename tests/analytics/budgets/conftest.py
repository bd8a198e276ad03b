"""What tests of budgets share."""

import pytest

from tests.analytics.budgets.budget_world import CONFIG, World


@pytest.fixture
def world(tmp_path):
    """A machine whose one price is that of a dollar a token."""
    made = World(tmp_path)
    made.configure(CONFIG)
    return made
