"""Write the shipped table of context windows: `python .ci/make_windows.py`.

A maintainers' tool, no part of the package. The facts are those of an installed genai-prices and, for what it lacks or
has wrong, the two tables below; the same version always gives the same bytes. That package carries no date, so a new
version needs `--date`, the day of its release; for the version already shipped the table's own date is kept.

One model has one window. Where providers disagree, the model's maker is right (the provider that claims the name); else
the most frequent value; else the largest. Names are spelled as the look-up spells them, and a name that it finds by
another row is left out. A seller in `_SELLERS` sets limits of its own, and has rows `seller/model` where they differ.
Google counts in Ki: a round million of one of its models is 2^20, whoever states it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from make_prices import read_package, write_shipped

from sessionlog.context.windows import DASHES, plain_names, undecorated
from sessionlog.errors import InvalidPrices

TABLE = Path(__file__).parents[1] / "sessionlog" / "data" / "context_windows.tsv"

_SELLERS = ("cursor", "github-copilot")

_KI = {1_000_000: 1 << 20, 2_000_000: 1 << 21}

_LACKING: Mapping[str, int] = {
    # The table of agent-runtimes' context.session, what of it the package does not have.
    "llama-3.1-70b": 131_072,
    "llama-3.1-8b": 131_072,
    "llama-3.2-90b": 131_072,
    "mistral-medium": 32_000,
    "mistral-small": 32_000,
    "mistral-tiny": 32_000,
    "mixtral-8x7b": 32_768,
    # The makers' own pages on their models. A dated name stands here where the bare one means an older model.
    "claude-2.0": 100_000,
    "claude-2.1": 200_000,
    "claude-instant-1.2": 100_000,
    "claude-instant-v1": 100_000,
    "claude-v2": 100_000,
    "claude-v2:1": 200_000,
    "codestral-2405": 32_000,
    "command-r": 128_000,
    "command-r-plus": 128_000,
    "command-r7b": 128_000,
    "devstral-medium": 128_000,
    "devstral-small": 128_000,
    "gemini-1.5-flash-8b": 1_048_576,
    "gemini-3-pro-preview": 1_048_576,
    "gpt-4.5-preview": 128_000,
    "kimi-for-coding": 262_144,
    "llama-3.1-405b-instruct": 131_072,
    "llama-3.1-8b-instant": 131_072,
    "llama-3.3-70b-versatile": 131_072,
    "magistral-medium-2509": 128_000,
    "ministral-3b-2410": 128_000,
    "ministral-8b-2410": 128_000,
    "mistral-medium-2505": 128_000,
    "mistral-medium-2508": 128_000,
    "mistral-medium-latest": 262_144,
    "mistral-small-2503": 128_000,
    "mistral-small-2506": 128_000,
    "mistral-small-latest": 262_144,
    "mixtral-8x7b-32768": 32_768,
    "open-mistral-7b": 32_000,
    "open-mistral-nemo": 128_000,
    "open-mixtral-8x22b": 64_000,
    "open-mixtral-8x7b": 32_000,
    "pixtral-12b": 128_000,
    "pixtral-large": 128_000,
}

_CORRECTED: Mapping[str, int] = {
    "gemini-1.5-pro": 2_097_152,  # the package itself says so under the name gemini-pro-1.5
    "claude-4.5-sonnet": 200_000,  # the million is a beta that has to be asked for
    "gemini-pro-latest": 1_048_576,  # gemini-pro is the first of that name
    "gpt-4-32k": 32_768,  # 32 Ki, not 32 thousand
    # Names that passed from model to model, whose last ones of their own (V3.1 and V3.2) took in 128K.
    "deepseek-chat": 128_000,
    "deepseek-reasoner": 128_000,
    "llama3.1-8b": 131_072,  # one seller's limit; its maker states 128 Ki
    "mistral-nemo": 128_000,  # one reseller's limit; its maker states 128k
    # The chat models beside the GPT-5 family take in less than the family.
    "gpt-5-chat": 128_000,
    "gpt-5.1-chat": 128_000,
    "gpt-5.2-chat": 128_000,
}


def build_table(released: str | None = None) -> bytes:
    """Build the table from the installed genai-prices.

    Args:
        released: ISO date of the package's release; None keeps the shipped table's date if it is of the same version.

    Raises:
        MissingExtra: genai-prices is not installed.
        InvalidPrices: There is no date for a new version.
    """
    source, providers = read_package("the windows are taken from")
    head = (
        "# Context windows in tokens. Names are lower case, with a dash for every dot, underline, colon and @.",
        f"# source: {source} (MIT, see NOTICE) and the tables in .ci/make_windows.py",
        f"# retrieved: {released or _known_date(source)}",
    )
    rows = (f"{name}\t{window}" for name, window in sorted(_choose(providers).items()))
    return "\n".join((*head, *rows, "")).encode("ascii")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool; wrong usage exits with 2."""
    parser = argparse.ArgumentParser(prog="python .ci/make_windows.py", description=__doc__)
    return write_shipped(parser, TABLE, build_table, arguments)


def _known_date(source: str) -> str:
    """The shipped table's date, if it is of this source."""
    head = TABLE.read_text("ascii").splitlines()[1:3] if TABLE.exists() else []
    if len(head) == 2 and head[0].startswith(f"# source: {source} "):
        return head[1].removeprefix("# retrieved: ")
    raise InvalidPrices(f"{source} is not the shipped version; give the day of its release with --date YYYY-MM-DD")


def _choose(providers: Sequence[Any]) -> dict[str, int]:
    stated: dict[str, dict[str, int]] = {}
    for seller, name, window in _statements(providers):
        stated.setdefault(name, {}).setdefault(seller, window)
    windows = {name: _one(name, stated, _maker(providers, name)) for name in stated}
    corrected = {_plain(name): window for name, window in _CORRECTED.items()}
    windows = {name: window for name, window in windows.items() if corrected.keys().isdisjoint(_shorter(name))}
    windows = {_plain(name): window for name, window in _LACKING.items()} | windows | corrected
    for name in sorted(windows, key=len, reverse=True):  # the longest is the most decorated
        if _found(name, {key: value for key, value in windows.items() if key != name}) == windows[name]:
            del windows[name]
    for name in sorted(stated, key=len):
        for seller in stated[name].keys() & set(_SELLERS):
            if _found(f"{seller}/{name}", windows) != stated[name][seller]:
                windows[f"{seller}/{name}"] = stated[name][seller]
    return windows


def _statements(providers: Iterable[Any]) -> Iterator[tuple[str, str, int]]:
    """(provider, model's name as the table writes it, window), of every name that the package lists literally."""
    for provider in providers:
        for model in provider.models:
            if model.context_window:
                for name in (model.id.lower(), *_literals(model.match)):
                    plain = undecorated(name).removesuffix("-batch")
                    window = model.context_window
                    yield provider.id, plain, _KI.get(window, window) if plain.startswith("gemini-") else window


def _literals(clause: Any) -> list[str]:
    [(kind, value)] = vars(clause).items()
    if kind == "equals":
        return [value.lower()]
    return [name for part in value for name in _literals(part)] if kind == "or_" else []


def _maker(providers: Iterable[Any], name: str) -> str:
    return next((p.id for p in providers if p.model_match is not None and p.model_match.is_match(name)), "")


def _one(name: str, stated: Mapping[str, Mapping[str, int]], maker: str) -> int:
    """One window of those that sellers give a name; the maker may have given it to the name without its date."""
    for plain in plain_names(name):
        if maker in stated.get(plain, {}):
            return stated[plain][maker]
    votes = Counter(
        [window for seller, window in stated[name].items() if seller not in _SELLERS] or stated[name].values()
    )
    return max(votes, key=lambda window: (votes[window], window))


def _plain(name: str) -> str:
    return name.translate(DASHES)


def _shorter(name: str) -> list[str]:
    return [other for other in plain_names(name) if len(other) <= len(name)]


def _found(name: str, windows: Mapping[str, int]) -> int | None:
    return next((windows[plain] for plain in plain_names(name) if plain in windows), None)


if __name__ == "__main__":
    sys.exit(main())
