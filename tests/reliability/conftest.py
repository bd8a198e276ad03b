"""A printed seed, so that any failure can be run again: `SESSIONLOG_SEED=… pytest tests/reliability`."""

import os
import random

import pytest


@pytest.fixture
def seed():
    """The seed of this run; given by `$SESSIONLOG_SEED`, else fresh."""
    value = int(os.environ.get("SESSIONLOG_SEED") or random.SystemRandom().getrandbits(32))
    print(f"SESSIONLOG_SEED={value}")
    return value
