"""Times as numbers: seconds, milli-, micro- or nanoseconds since 1970, told apart by their size."""

from __future__ import annotations

import math
from typing import Any

_SCALES = ((1e11, 1_000_000_000), (1e14, 1_000_000), (1e17, 1_000))


def epoch_ns(value: Any) -> int | None:
    """Return nanoseconds since 1970; None for what is no time. Numbers up to the year 5138 count as seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        return None
    scale = next((scale for limit, scale in _SCALES if value < limit), 1)
    whole = int(value)
    time_ns = whole * scale + round((value - whole) * 1_000_000) * scale // 1_000_000
    return time_ns if time_ns < 2**63 else None
