"""What the search for secrets costs: per event while an agent logs, and per megabyte of text that is made against it.

    python benchmarks/bench_secrets.py [--megabytes 1] [--rounds 5]

Loggers with and without the search take turns, a hundred events each, so that both have the same machine; printed are
the fastest hundreds and their difference. The texts are those of `tests/events/adversarial.py`: the time of a text is
the fastest of its rounds, and the ratio is to `orjson.loads` of as many bytes.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from typing import Any

import orjson

from sessionlog import SessionLogger
from sessionlog.events.redact import redact_line
from tests.events.adversarial import adversarial

HUNDRED, TURNS = 100, 600
_SENTENCE = (
    "The test fails because the importer keeps its offset in memory; I will write it to the ledger first, and then"
)
_USAGE = {"input": 812, "output": 96, "cache_read": 14_100, "cache_write": 512}
EVENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "session.start": (
        "session.start",
        {"provider": "anthropic", "model": "claude-opus-4-5", "work_dir": "/home/me/src/project", "prompt": _SENTENCE},
    ),
    "llm.request": (
        "llm.request",
        {"model": "claude-opus-4-5", "messages": [{"role": "user", "content": _SENTENCE}], "temperature": 0.2},
    ),
    "llm.response": (
        "llm.response",
        {"content": _SENTENCE, "model": "claude-opus-4-5", "usage": _USAGE, "cost_usd": 0.0123, "latency_ms": 4200},
    ),
    "tool.call": (
        "tool.call",
        {
            "tool": "bash",
            "input": {"command": "pytest -q tests/test_importer.py --maxfail=1"},
            "output": "1 failed, 12 passed in 3.1s; see tests/test_importer.py::test_resume for the traceback",
            "duration_ms": 3100,
        },
    ),
    "llm.delta": ("llm.delta", {"content": " the importer keeps", "index": 17}),
}


def emit_cost(type_: str, data: dict[str, Any], folder: str) -> tuple[float, float]:
    """Return microseconds per event with and without the search."""
    logs = [SessionLogger(folder, f"{type_}-{on}", work_dir="/w", redact=on) for on in (True, False)]
    best = [float("inf")] * 2
    for turn in range(TURNS):
        for at in (0, 1) if turn % 2 else (1, 0):
            emit = logs[at].emit
            before = time.perf_counter_ns()
            for _ in itertools.repeat(None, HUNDRED):
                emit(type_, data)
            best[at] = min(best[at], (time.perf_counter_ns() - before) / HUNDRED / 1000)
    for log in logs:
        log.close()
    return best[0], best[1]


def seconds(run: Callable[[], object]) -> float:
    """The thread's own time: waiting for the processor does not count."""
    before = time.thread_time()
    run()
    return time.thread_time() - before


def main() -> None:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worst", type=int, default=25)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="sessionlog-bench-")
    try:
        print(f"{'event':<16}{'bytes':>7}{'with µs':>9}{'without':>9}{'search µs':>11}")
        for name, (type_, data) in EVENTS.items():
            size = len(
                orjson.dumps(
                    {"session_id": "s", "seq": 1, "type": type_, "ts": "2026-11-21T10:00:00.000000Z", "data": data}
                )
            )
            on, off = emit_cost(type_, data, os.path.join(folder, name))
            print(f"{name:<16}{size:>7}{on:>9.2f}{off:>9.2f}{on - off:>11.2f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    texts = adversarial(int(options.megabytes * 1_000_000))
    plain = orjson.dumps([f"{_SENTENCE} {n}" for n in range(9000)])
    best = dict.fromkeys(texts, float("inf"))
    reference = float("inf")
    for _ in range(options.rounds):
        for name, text in texts.items():
            best[name] = min(best[name], seconds(lambda text=text: redact_line(text)) / len(text))
        reference = min(reference, seconds(lambda: orjson.loads(plain)) / len(plain))
    ordered = sorted(best, key=lambda name: -best[name])
    print(f"\n{len(best)} texts, of them above 50 ms/MB: {sum(cost > 50e-9 for cost in best.values())}")
    print(f"{'ms/MB':>8}{'× orjson.loads':>16}  text")
    for name in ordered[: options.worst]:
        print(f"{best[name] * 1e9:>8.1f}{best[name] / reference:>16.0f}  {name}")


if __name__ == "__main__":
    main()
