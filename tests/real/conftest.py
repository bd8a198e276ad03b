"""The homes' readings: each home is copied and read once, whatever number of tests ask for it."""

import pytest

from tests.real.data import load_home
from tests.real.reading import Reading, read_home


@pytest.fixture(scope="session")
def read(tmp_path_factory):
    """Return the reading of a home by its name."""
    work, known = tmp_path_factory.mktemp("homes"), {}

    def reading_of(name: str) -> Reading:
        if name not in known:
            known[name] = read_home(load_home(name), work)
        return known[name]

    return reading_of


@pytest.fixture
def reading(request, read):
    """Return the reading of the home that a test is parametrised with."""
    return read(request.param)
