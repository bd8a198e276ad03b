"""A cluster in this process: the functions of `engine.spark_frames` on plain lists, for tests without Spark.

Rows are grouped as a shuffle would group them and decided on by the same functions; only Spark itself is left out.
"""

from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from types import SimpleNamespace

from sessionlog.engine import spark
from sessionlog.engine.portable import scan_tasks, winning_calls, winning_responses
from sessionlog.ledger.columns import Call, Response, names_of
from sessionlog.ledger.schema import QUARTER_NS


class Scans(list):
    """A frame of scans that can be kept and released."""

    def persist(self):
        """Return it."""
        return self

    def unpersist(self):
        """Do nothing."""


def scanned_logs(session, batches, here, prices, *, with_calls):
    """As in `spark_frames`."""
    session.batches = batches
    return Scans([*(row for batch in batches for row in scan_tasks(batch, prices, with_calls=with_calls)), *here])


def headers(scans):
    """As in `spark_frames`."""
    return [header for header, *_ in scans if header is not None]


def counting_responses(scans, known, partitions):
    """As in `spark_frames`."""
    rows = [Response._make(row) for _, responses, _ in scans for row in responses]
    return [row for row in rows if row.family is None] + _decided(rows, "family", winning_responses, known)


def counting_calls(scans, known, partitions):
    """As in `spark_frames`."""
    rows = _decided([Call._make(row) for _, _, calls in scans for row in calls], "key", winning_calls, known)
    return [SimpleNamespace(file_id=row.file_id, calls=[row]) for row in rows]


def _decided(rows, column, decide, known):
    key_of = attrgetter(column)
    keyed = sorted((row for row in rows if key_of(row) is not None), key=key_of)
    return [row for _, copies in groupby(keyed, key=key_of) for row in decide(list(copies), known)]


class Total(SimpleNamespace):
    """A row of Spark, whose columns are attributes and items."""

    __getitem__ = SimpleNamespace.__getattribute__


def totals_and_singles(session, responses, *, quarters, near_wire, partitions):
    """As in `spark_frames`; a total for each response that is summed."""
    found = []
    for one in responses:
        quarter = None if one.time_ns is None else one.time_ns // QUARTER_NS * QUARTER_NS
        is_unpriced = one.priced and one.cost_nano is None and one.estimate_nano is None
        is_single = quarters is None or quarter in quarters or one.session_id in near_wire or is_unpriced
        timed = one.latency_bucket is not None
        sums = {name: getattr(one, name) for name in names_of(Response, "sum")}
        found.append(
            Total(
                file_id=one.file_id, session_id=one.session_id, label_id=one.label_id, quarter_ns=quarter,
                first_ns=one.time_ns, last_ns=one.time_ns, records=int(not is_single),
                singles=[one] if is_single else [], buckets=[one.latency_bucket] if timed else [],
                generated=one.output if timed else 0, generation_us=int(one.latency_ms * 1000 + 0.5) if timed else 0,
                **sums,
            )
        )  # fmt: skip
    return found


def stream(frame):
    """As in `spark_frames`."""
    return iter(frame)


FRAMES = SimpleNamespace(
    scanned_logs=scanned_logs, headers=headers, counting_responses=counting_responses, counting_calls=counting_calls,
    totals_and_singles=totals_and_singles, stream=stream,
)  # fmt: skip


def use(monkeypatch, cores=2):
    """Let the engine use this cluster; return its session, which notes its batches."""
    import sys

    import sessionlog.engine

    session = SimpleNamespace(batches=[])

    @contextmanager
    def opened(master, given):
        yield session

    monkeypatch.setattr(spark, "open_session", opened)
    monkeypatch.setattr("sessionlog.engine.spark_session.import_session", lambda: object)
    monkeypatch.setattr(spark, "parallelism", lambda session: cores)
    monkeypatch.setattr(spark, "progress_of_tasks", lambda *given: opened(None, None))
    monkeypatch.setattr(sessionlog.engine, "spark_frames", FRAMES, raising=False)
    monkeypatch.setitem(sys.modules, "sessionlog.engine.spark_frames", FRAMES)
    return session
