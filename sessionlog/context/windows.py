"""Context windows: look up a model's window in tokens in a shipped table, by any name that logs use for it.

The table (`sessionlog/data/context_windows.tsv`, written by `.ci/make_windows.py`) has one window per model. A name is
looked up as it is, then without decorations (vendor, region, date, stage), one after another. The rest must be in the
table as a whole name, so that no model gets the window of a shorter name's family. A status line does this in its own
process, so nothing is imported, and the table is searched, not parsed.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

DEFAULT_CONTEXT_WINDOW = 128_000
"""The assumed window of an unknown model, in tokens."""

_MAX_NAME = 256  # longer names are damage, and unknown
_MAX_TAILS = 16  # an ARN has eight
_MILLION = "[1m]"  # Claude Code's suffix for a session with the long window

# us.anthropic.claude-sonnet-4-20250514-v1:0 = region, vendor, model, version. "deepseek" is not in the list: of
# Bedrock's "deepseek.r1" only "r1" would be left, which is no name.
_BEDROCK = frozenset({
    "us", "eu", "ap", "apac", "jp", "au", "ca", "sa", "me", "il", "in", "us-gov", "global", "regional", "ai21",
    "amazon", "anthropic", "cohere", "google", "meta", "minimax", "mistral", "moonshot", "moonshotai", "nvidia",
    "openai", "qwen", "writer", "xai", "zai",
})  # fmt: skip
_TARIFFS = (":free", ":beta", ":extended", ":exacto", ":floor", ":latest", ":nitro", ":online", ":thinking")
_STAGES = ("-latest", "-preview", "-exp", "-experimental", "-beta", "-default")
DASHES = str.maketrans("._@: ", "-----")

_table = b""
_found: dict[tuple[str, str], int | None] = {}
_MAX_FOUND = 1024


def find_context_window(model: str, provider: str = "") -> int | None:
    """Return a model's context window in tokens; None if the model is unknown. Never raises for odd names.

    Args:
        model: The name as a log, an agent or a provider writes it: in any case, with a date, a vendor or provider in
            front (`openai:`, `openrouter:openai/`), the decoration of Bedrock or Vertex, `-latest`, `-preview`; or with
            its window: `[1m]` is a million, and `:24k` behind Bedrock's version 24,000.
        provider: The provider. It matters only if the table has its own limits for it, as for GitHub Copilot.
    """
    key = model, provider
    try:
        return _found[key]
    except KeyError:
        pass
    if len(_found) >= _MAX_FOUND:
        _found.clear()
    window = _found[key] = _look_up(model.strip().lower(), provider.strip().lower())
    return window


def window_for(used: int, *sizes: int | None, models: Iterable[str | None] = (), provider: str = "") -> int | None:
    """Return the context window of a session: the first known size that holds what a request has sent.

    A window that is smaller than a request's own input is wrong: the session has a larger one. So clients call a
    session with a million tokens one of 200,000, and a model's window in the table may be that of its first version.

    Args:
        used: The prompt tokens of the request.
        sizes: Sizes that a log or a client names; None or 0 for none.
        models: Names of the model, for the table: the one asked for, the one that answered.
        provider: The provider.
    """
    for size in sizes:
        if size and size >= used:
            return size
    known = (find_context_window(name, provider) for name in models if name)
    return next((size for size in known if size and size >= used), None)


def get_model_context_window(model: str | None) -> int:
    """Return a model's context window in tokens; `DEFAULT_CONTEXT_WINDOW` if it is unknown or None."""
    return (find_context_window(model) if model else None) or DEFAULT_CONTEXT_WINDOW


def plain_names(name: str) -> Iterator[str]:
    """Yield the names under which a lower-case name may be in the table, the closest first, some of them twice.

    They are in the table's form: dots, underscores, colons and the @ of Vertex are dashes.
    """
    for tail in _tails(name):
        for form in _without_cloud(tail):
            plain = form.translate(DASHES)
            while plain:
                yield plain
                # Some models are in the table only as a preview, but are logged under their final name.
                yield f"{plain}-preview"
                plain = _without_suffix(plain)


def undecorated(name: str) -> str:
    """Return a lower-case name without path, vendor and cloud decoration, in the table's form, with date and stage."""
    *_, bare = _without_cloud(name.rpartition("/")[2])
    return bare.translate(DASHES)


def _look_up(name: str, provider: str) -> int | None:
    if name.endswith(_MILLION):
        return 1_000_000
    name = "-".join(name.partition("[")[0].split())
    if not name or len(name) > _MAX_NAME:
        return None
    stated = _stated(name)
    if stated:
        return stated
    if provider:
        name = f"{provider}/{name}"
    return next((window for plain in plain_names(name) if (window := _read(plain)) is not None), None)


def _stated(name: str) -> int:
    """Return the window that follows the version in a Bedrock id, as in nova-pro-v1:0:24k; 0 without one."""
    model, _, size = name.rpartition(":")
    _, colon, version = model.rpartition(":")
    digits = size[:-1]
    is_size = size[-1:] == "k" and digits.isascii() and digits.isdecimal() and len(digits) < 5
    return int(digits) * 1000 if is_size and colon and version.isdecimal() else 0


def _read(plain: str) -> int | None:
    global _table  # noqa: PLW0603 - read once, at the first look-up
    if not _table:
        loader: Any = __spec__.loader  # as pkgutil.get_data, from a zip too, without the imports of pkgutil
        folder = os.path.dirname(os.path.dirname(__file__))
        _table = loader.get_data(os.path.join(folder, "data", "context_windows.tsv"))
    start = _table.find(b"\n%b\t" % plain.encode("ascii", "replace"))
    if start < 0:
        return None
    return int(_table[_table.index(b"\t", start) : _table.index(b"\n", start + 1)])


def _tails(name: str) -> Iterator[str]:
    """Yield a name, and the rest of it after each vendor, provider, folder or part of an ARN."""
    yield name
    for _ in range(_MAX_TAILS):
        if name.startswith("ft:"):  # ft:MODEL:organisation:name:id
            yield name.split(":")[1]
            return
        cut = min((place for place in (name.find("/"), name.find(":")) if place >= 0), default=-1)
        if cut < 0:
            return
        name = name[cut + 1 :]
        yield name


def _without_cloud(name: str) -> Iterator[str]:
    """Yield a name without its tariff, then without Bedrock's region and vendor, then without its version."""
    for tariff in _TARIFFS:
        name = name.removesuffix(tariff)
    yield name
    bare, bedrock = name, name.startswith("deepseek.")
    head, dot, rest = bare.partition(".")
    while dot and rest and head in _BEDROCK:
        bare, bedrock = rest, True
        head, dot, rest = bare.partition(".")
    if bedrock:
        yield bare
    model, colon, _ = bare.partition(":")
    if bedrock or colon:
        stem, _, version = model.rpartition("-")
        if version[:1] == "v" and version[1:].isdecimal():
            yield model
            yield stem
        elif bedrock:
            yield model


def _without_suffix(plain: str) -> str:
    """Return a name without the date or the stage at its end; "" if it has neither."""
    for stage in _STAGES:
        if plain.endswith(stage):
            return plain.removesuffix(stage)
    parts = plain.split("-")
    for count in (3, 2, 1):
        if len(parts) > count and _is_date(parts[-count:]):
            return "-".join(parts[:-count])
    return ""


def _is_date(parts: list[str]) -> bool:
    """Whether parts of a name are a date, or a version in the place of one (Gemini's 002)."""
    digits = "".join(parts)
    match [len(part) if part.isdecimal() and part.isascii() else 0 for part in parts]:
        case [4, 2, 2] | [8]:
            return digits.startswith("20") and _is_month(digits[4:6])
        case [2, 4]:
            return _is_month(digits[:2]) and digits[2:4] == "20"
        case [2, 2]:
            return _is_month(digits[:2]) and digits[2:] <= "31"
        case [4]:  # 0613 is a day, 2411 a month
            return (_is_month(digits[:2]) and digits[2:] <= "31") or _is_month(digits[2:])
        case [3]:
            return digits.startswith("00")
    return False


def _is_month(digits: str) -> bool:
    return "01" <= digits <= "12"
