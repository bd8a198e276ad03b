"""What all tests share: interrupts, which a shell turns off for what it starts in the background, and the tiers."""

import signal

import pytest
from hypothesis import is_hypothesis_test, settings

from tests.profiles import LAWS_OF_BOTH_TIERS

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # children would inherit that, and wait for their interrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)

_MINUTES = 15 * 60


def pytest_configure(config):
    """The slow tier tries many random examples, unless another profile is asked for."""
    if config.getoption("markexpr") == "slow" and not config.getoption("--hypothesis-profile"):
        settings.load_profile("slow")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Some laws are of both tiers; ten thousand examples take longer than a quick test may."""
    if settings.get_current_profile_name() == "quick":
        return
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.timeout(_MINUTES))
            if item.nodeid.startswith(LAWS_OF_BOTH_TIERS):
                item.add_marker(pytest.mark.slow)
