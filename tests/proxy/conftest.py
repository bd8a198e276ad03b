"""A provider and a proxy before it."""

import pytest

from tests.proxy.stub import Proxied, stub


@pytest.fixture
def provider():
    """A provider whose answers the test gives."""
    with stub() as made:
        yield made


@pytest.fixture
def proxied(provider, tmp_path):
    """A proxy before it."""
    made = Proxied(tmp_path, provider.url, drain_seconds=2.0)
    yield made
    made.close()
