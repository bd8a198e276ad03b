"""fizeau: the logs of the Go original, which speak a dialect of the native format (see `fizeau_dialect`).

Where: `.fizeau/sessions/*.jsonl` under a work folder; only the working folder's (`$PWD`) are found, others are given by
path. Shape and reading: as native; each log's session.start shows which dialect it has. Versions seen: from
before v0.11, with an integer `tool_calls` and `timestamp` instead of `ts`, and after it.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from sessionlog.sources import native
from sessionlog.sources.find_places import expand_places
from sessionlog.sources.fizeau_dialect import ID
from sessionlog.sources.places import PLACES

SOURCE = replace(
    native.SOURCE,
    id=ID,
    title="fizeau",
    locate=partial(expand_places, places=PLACES[ID]),
    recognises=lambda path, head: native.recognises(path, head) and b'"v":' not in head.replace(b" ", b""),
)
