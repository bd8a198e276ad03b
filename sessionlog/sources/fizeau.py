"""fizeau: the logs of the Go original, which speak a dialect of the native format (see `fizeau_dialect`).

Where: `.fizeau/sessions/*.jsonl` under a work folder; only the working folder's (`$PWD`) are found, others are given by
path. Shape and reading: as native; each log's session.start shows which dialect it has. Versions seen: from
before v0.11, with an integer `tool_calls` and `timestamp` instead of `ts`, and after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec.structs import replace

from sessionlog.sources import native
from sessionlog.sources.fizeau_dialect import ID
from sessionlog.sources.protocol import Env


def locate(env: Env) -> Iterator[str]:
    """Yield the sessions' folder of the shell's working folder."""
    here = env.get("PWD", "")
    if os.path.isabs(here):
        yield os.path.join(here, ".fizeau", "sessions")


SOURCE = replace(
    native.SOURCE,
    id=ID,
    title="fizeau",
    locate=locate,
    recognises=lambda path, head: native.recognises(path, head) and b'"v":' not in head.replace(b" ", b""),
)
