"""Writers of small logs in a folder, and what is in the file that they leave."""

import json

from sessionlog.logger.event_writer import EventWriter
from sessionlog.testing import FixedClock


def writer(folder, session_id="s", **options):
    """An EventWriter whose clock goes a second a stamp."""
    options.setdefault("clock", FixedClock())
    return EventWriter(folder, session_id, **options)


def content_of(logger):
    """The bytes of its file."""
    with open(logger.path, "rb") as file:
        return file.read()


def lines(logger):
    """The objects of its file, one a line."""
    return [json.loads(line) for line in content_of(logger).splitlines()]
