"""Scanning with several cores or machines: any executor scans logs, one process owns the ledger."""

from __future__ import annotations

import os

from sessionlog import files


def is_place(path: str) -> bool:
    """Whether a folder, or the URL of an open remote place, has the manifests of exports."""
    return any(name.startswith("v=") for name in files.list_names(os.path.join(path, "manifest")))
