"""Pictures inside a page: PNG, JPEG, GIF and WebP by their first bytes, of a size that a browser can show.

What a log calls a picture is not believed: the type of the address is that of the bytes. SVG can hold scripts and is
none of the four.
"""

from __future__ import annotations

import base64
import struct

from sessionlog.render.html.page import Html, tag
from sessionlog.render.numbers import size
from sessionlog.render.replay.blocks import Picture

_MOST_BYTES = 3 << 20
_MOST_SIDE = 10_000
_MOST_PIXELS = 40_000_000
"""A small file may unpack to gigabytes; larger pictures are named with their size."""

_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""JPEG's segments with a frame's height and width."""


def picture(found: Picture) -> Html:
    """Return a picture as an element, or a line that names it where it cannot be shown."""
    kind, width, height = measure(found.data)
    if not kind or len(found.data) > _MOST_BYTES or max(width, height) > _MOST_SIDE or width * height > _MOST_PIXELS:
        sides = f", {width:,} × {height:,}" if width and height else ""
        return tag(
            "p", f"a picture that is not shown: {found.media_type[:60]}, {size(len(found.data))}{sides}", class_="dim"
        )
    address = f"data:{kind};base64,{base64.b64encode(found.data).decode('ascii')}"
    alt = f"Picture of {width} by {height} pixels"
    return tag("p", tag("img", src=address, alt=alt, width=width, height=height, loading="lazy"), class_="picture")


def measure(data: bytes) -> tuple[str, int, int]:
    """Return the media type of a picture, its width and its height; "" and zeros for anything else."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
            return "image/png", *_positive(struct.unpack(">II", data[16:24]))
        if data.startswith((b"GIF87a", b"GIF89a")):
            return "image/gif", *_positive(struct.unpack("<HH", data[6:10]))
        if data.startswith(b"\xff\xd8\xff"):
            return "image/jpeg", *_positive(_jpeg(data))
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return "image/webp", *_positive(_webp(data))
    except (struct.error, IndexError, ValueError):
        pass
    return "", 0, 0


def _positive(sides: tuple[int, ...]) -> tuple[int, int]:
    width, height = sides
    if not width or not height:
        raise ValueError("a side of no length")
    return width, height


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while data[at] == 0xFF:
        if data[at + 1] == 0xFF:  # padding
            at += 1
            continue
        if data[at + 1] in _FRAMES:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    raise ValueError("no frame")


def _webp(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack("<HH", data[26:30])
            return width & 0x3FFF, height & 0x3FFF
    raise ValueError("no such chunk")
