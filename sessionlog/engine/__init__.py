"""Scanning with several cores or machines: any executor scans logs, one process owns the ledger."""

from __future__ import annotations

import os

from sessionlog import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from sessionlog.ledger.handover import HandOver
    from sessionlog.ledger.scanning import Job
    from sessionlog.ledger.sync import Scanner
    from sessionlog.pricing.book import PriceBook
    from sessionlog.sources.protocol import Source


def scan_in_parallel(executor: Executor | None = None, jobs: int | None = None) -> Scanner:
    """Return the function `scanner` returns; what it needs is imported when there is something to scan."""

    def scan(work: Sequence[Job], sources: Mapping[str, Source], prices: PriceBook) -> Iterator[HandOver]:
        from sessionlog.engine.scanner import scanner

        return scanner(executor, jobs)(work, sources, prices)

    return scan


def is_place(path: str) -> bool:
    """Whether a folder, or the URL of an open remote place, has the manifests of exports."""
    return any(name.startswith("v=") for name in files.list_names(os.path.join(path, "manifest")))
