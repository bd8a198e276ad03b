"""What one event costs the agent: sessionlog against stdlib logging, structlog and loguru, same event, same disk.

    python benchmarks/bench_append.py

Rounds are interleaved and the fastest is kept: read the ratios, not the microseconds. Missing packages are skipped.
"""

import importlib.util
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from typing import Any

from sessionlog import SessionLogger

EVENTS, ROUNDS = 20_000, 5
DATA = {
    "tool": "bash",
    "input": {"command": "pytest -q tests/test_importer.py --maxfail=1"},
    "output": "1 failed, 12 passed in 3.1s; see tests/test_importer.py::test_resume for the traceback",
    "duration_ms": 3100,
}
Emit = Callable[[], object]


def with_sessionlog(folder: str) -> Emit:
    """Emit with everything on: lock, seq, stamp, redaction, one write(2)."""
    log = SessionLogger(folder, "bench", work_dir="/w")
    return lambda: log.emit("tool.call", DATA)


def with_logging(folder: str) -> Emit:
    """A FileHandler and json.dumps."""
    logger = logging.getLogger("bench")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    handler = logging.FileHandler(os.path.join(folder, "logging.jsonl"))
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)
    return lambda: logger.info(
        json.dumps({"session_id": "bench", "seq": 1, "type": "tool.call", "ts": time.time(), "data": DATA})
    )


def with_structlog_bytes(folder: str) -> Emit:
    """BytesLogger with orjson, the fastest way its documentation names."""
    import orjson
    import structlog

    file = open(os.path.join(folder, "structlog-bytes.jsonl"), "wb")  # noqa: SIM115 - lives as long as the benchmark
    return _structlog(structlog.BytesLogger(file), structlog.processors.JSONRenderer(serializer=orjson.dumps))


def with_structlog(folder: str) -> Emit:
    """The default JSON renderer into a text file."""
    import structlog

    file = open(os.path.join(folder, "structlog.jsonl"), "w", encoding="utf-8")  # noqa: SIM115 - see above
    return _structlog(structlog.WriteLogger(file), structlog.processors.JSONRenderer())


def _structlog(sink: Any, renderer: Any) -> Emit:
    import structlog

    stamps = [structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)]
    logger = structlog.wrap_logger(
        sink,
        processors=[*stamps, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=True,
    ).bind()
    return lambda: logger.info("tool.call", session_id="bench", seq=1, data=DATA)


def with_loguru(folder: str) -> Emit:
    """A serialising sink."""
    from loguru import logger

    logger.remove()
    logger.add(os.path.join(folder, "loguru.jsonl"), serialize=True)
    return lambda: logger.bind(session_id="bench", seq=1, data=DATA).info("tool.call")


def measure(emit: Emit) -> tuple[float, float, float]:
    """Return (p50 µs, p99 µs, events per second) of one round."""
    clock = time.perf_counter_ns
    times = []
    for _ in range(EVENTS):
        before = clock()
        emit()
        times.append(clock() - before)
    times.sort()
    before = clock()
    for _ in range(EVENTS):
        emit()
    rate = EVENTS / ((clock() - before) / 1e9)
    return times[EVENTS // 2] / 1000, times[EVENTS * 99 // 100] / 1000, rate


def main() -> None:
    """Measure all that is installed and print a table."""
    folder = tempfile.mkdtemp(prefix="sessionlog-bench-")
    makers = {"sessionlog": with_sessionlog, "logging + json": with_logging}
    others = (
        ("structlog + orjson", with_structlog_bytes),
        ("structlog + json", with_structlog),
        ("loguru", with_loguru),
    )
    for name, make in others:
        if importlib.util.find_spec(name.split()[0]):
            makers[name] = make
        else:
            print(f"{name}: not installed, skipped")
    try:
        emits = {name: make(folder) for name, make in makers.items()}
        rounds = {name: [measure(emit) for _ in range(1)] for name, emit in emits.items()}
        for _ in range(ROUNDS - 1):
            for name, emit in emits.items():
                rounds[name].append(measure(emit))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    best = {
        name: (min(r[0] for r in got), min(r[1] for r in got), max(r[2] for r in got)) for name, got in rounds.items()
    }
    own = best["sessionlog"][0]
    print(f"{'a 300-byte event':<20}{'p50 µs':>9}{'p99 µs':>9}{'events/s':>12}{'× sessionlog':>14}")
    for name, (median, late, rate) in best.items():
        print(f"{name:<20}{median:>9.2f}{late:>9.2f}{rate:>12,.0f}{median / own:>14.2f}")


if __name__ == "__main__":
    main()
