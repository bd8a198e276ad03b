"""How many examples hypothesis tries: few and always the same in the quick tier, 3,000 random ones in the slow tier.

`pytest -m slow` loads the profile `slow`, and then tries the laws of `LAWS_OF_BOTH_TIERS`, too. All laws are tried by
`pytest -m hypothesis --hypothesis-profile release`, 10,000 times. A failure prints its seed: `--hypothesis-seed` repeats it.
"""

from hypothesis import settings

QUICK, SLOW, RELEASE = 200, 3_000, 10_000
STORIES = {"quick": (8, 30), "slow": (1_000, 50)}
"""Tier → stories of a state machine, and steps of each."""

LAWS_OF_BOTH_TIERS = (
    "tests/logger/test_p01_any_payload.py",  # emit takes any object
    "tests/events/test_encode.py",  # what is written is read; encoding never raises
    "tests/reader/test_stream.py",  # reading never raises, and every byte is accounted for
    "tests/render/test_escape.py",  # nothing that acts on a terminal passes
    "tests/ledger/test_histogram.py",  # sums do not depend on their order
    "tests/analytics/test_place.py",  # many machines count what one does
)

settings.register_profile("quick", max_examples=QUICK, derandomize=True, deadline=None)
settings.register_profile("slow", max_examples=SLOW, derandomize=False, deadline=None, print_blob=True)
settings.register_profile("release", settings.get_profile("slow"), max_examples=RELEASE)
settings.load_profile("quick")


def examples(number: int) -> settings:
    """Settings of a law for which `number` examples are enough where another has 200; other profiles keep that share.

    The quick tier tries a third of them: the same each time, they find what a change has broken, and nothing else.
    """
    if settings.default.max_examples == QUICK:
        return settings(max_examples=number // 3)
    return settings(max_examples=round(number * settings.default.max_examples / QUICK))
