"""Writers, followers and a syncer side by side: nothing is lost, nothing grows."""

import sys

import pytest

from tests.reliability.soak import run_soak

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory and descriptors are read from /proc")


def test_a_short_soak(tmp_path, seed):
    """Some seconds of what the release tier does for half an hour."""
    soaked = run_soak(tmp_path, seconds=2, seed=seed)
    print(soaked)
    assert soaked.findings == []
    assert soaked.syncs > 3
    assert soaked.acknowledged > 500


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_soak_of_minutes(tmp_path, seed):
    """Long enough for a leak of some kilobytes per second to show; the release has half an hour."""
    soaked = run_soak(tmp_path, seconds=60, seed=seed)
    print(soaked)
    assert soaked.findings == []
