"""Histogram: latencies as buckets, one integer per record; histograms can be added, percentiles are within 2 %.

bucket = floor(log(ms) / log 1.02); a bucket's value is its geometric mean. Adding counts per bucket is associative and
commutative; the empty histogram is the neutral element.
"""

from __future__ import annotations

from sessionlog.ledger.schema import LETTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LOWEST = -700
"""The bucket of a microsecond; no measured latency is shorter."""


_FEW = 10_000


def counts_of(latencies: str | None) -> Mapping[int, int]:
    """Return bucket → count of a histogram stored as text (see `schema`); concatenated texts are sums."""
    text = latencies or ""
    if len(text) < _FEW:
        return {ord(letter) - LETTER: text.count(letter) for letter in set(text)}
    from collections import Counter

    return {ord(letter) - LETTER: count for letter, count in Counter(text).items()}


def percentile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the latency in ms that `share` of the records do not exceed (nearest rank), None for no records."""
    total = sum(counts.values())
    if total == 0:
        return None
    rank = max(1, -int(-share * total // 1))
    for bucket in sorted(counts):
        rank -= counts[bucket]
        if rank <= 0:
            return 0.0 if bucket == LOWEST else 1.02 ** (bucket + 0.5)
    return None
