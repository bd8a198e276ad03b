"""Tables, CSV and routing texts of the original and of ours, read back: place → name → text."""

import csv
import io
import re
from itertools import takewhile

from tests.conformance.facts import OUTCOMES, cell_name

_TABLE = (
    "sessions", "input_tokens", "output_tokens", "total_tokens", "known_cost_usd", "unknown_cost_sessions",
    "cache_hit_rate", "success_rate", "cost_per_success", "input_tokens_per_second", "output_tokens_per_second",
)  # fmt: skip
_ROW = re.compile(r"(.+?)" + r" +(\S+)" * len(_TABLE) + r"\n", re.DOTALL)
_FIGURES = {
    "auto_acceptance_rate": re.compile(r"auto accepted +[█░▏▎▍▌▋▊▉]* *(–|\S+ %) "),
    "total_requests": re.compile(r"auto accepted .* of ([\d,]+) sessions? "),
    "override_disagreement_rate": re.compile(r"override disagreed +[█░▏▎▍▌▋▊▉]* *(–|\S+ %) "),
    "total_overrides": re.compile(r"override disagreed .* of ([\d,]+) overrides? "),
}
_CELLS = ("count", *(f"{word}_outcomes" for word in OUTCOMES))


def plain_name(place: str) -> str:
    """The place of a row without what layout does to names: cells apart, a line end within a name."""
    return " ".join(place.replace("|", " ").replace("⏎", " ").split())


def read_csv(text: str) -> dict[str, dict[str, str]]:
    """A usage CSV, the original's or ours; the names are the columns', those of the groups left out."""
    rows = {}
    for row in csv.DictReader(io.StringIO(text, newline="")):
        provider, model = row.pop("provider"), row.pop("model")
        rows["total" if provider == "TOTAL" and not model else plain_name(f"{provider}|{model}")] = row
    return rows


def read_table(text: str) -> dict[str, dict[str, str]]:
    """The original's table; a name with a line end in it spreads over two lines there."""
    body = text[text.index("OUT tok/s") :].partition("\n")[2]
    rows = {}
    for names, *cells in _ROW.findall(body):
        name = plain_name(names)
        rows["total" if name == "TOTAL" else name] = dict(zip(_TABLE, cells, strict=True))
    return rows


def read_our_table(text: str) -> dict[str, dict[str, str]]:
    """Our table by its titles; empty when there is none."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("PROVIDER")), None)
    if start is None:
        return {}
    titles = re.split(r" {2,}", lines[start].strip())
    rows = {}
    for line in takewhile(bool, lines[start + 1 :]):
        cells = re.split(r" {2,}", line.strip())
        if len(cells) > 1:
            keys = cells[: len(cells) - len(titles) + 2]
            rows[plain_name(" ".join(keys))] = dict(zip(titles[2:], cells[len(keys) :], strict=True))
    return rows


def read_routing_text(text: str) -> dict[str, dict[str, str]]:
    """The original's routing text."""
    accepted = re.search(r"^Auto-acceptance rate: (\S+) \(-?\d+ / (\d+)\)$", text, re.MULTILINE)
    disagreed = re.search(r"^Override disagreement rate: (\S+) \((\d+) overrides\)$", text, re.MULTILINE)
    assert accepted, text
    assert disagreed, text
    facts = {
        "routing": {
            "auto_acceptance_rate": accepted[1], "total_requests": accepted[2],
            "override_disagreement_rate": disagreed[1], "total_overrides": disagreed[2],
        }
    }  # fmt: skip
    for line in text.partition("PROMPT_FEATURES")[2].splitlines()[1:]:
        bucket, axis, match, count, rate, *outcomes = line.split()
        numbers = dict(zip(_CELLS, (count, *outcomes), strict=True))
        facts[cell_name(bucket, axis, match == "true")] = numbers | {"success_rate": rate}
    return facts


def read_routing_csv(text: str) -> dict[str, dict[str, str]]:
    """Our breakdown as CSV."""
    return {
        cell_name(row["prompt_feature_bucket"], row["axis"], row["match"] == "true"): {
            name: row[name] for name in _CELLS
        }
        for row in csv.DictReader(io.StringIO(text))
    }


def read_routing_view(text: str) -> dict:
    """Our view: the figures as `routing`, and (words, axis, agrees) → count and success rate."""
    if text.startswith("No sessions"):
        nothing = {"total_requests": "0", "total_overrides": "0"}
        return {"routing": {"auto_acceptance_rate": "–", "override_disagreement_rate": "–", **nothing}}
    if "no decision of a router" in text:  # the original calls sessions without a router accepted; its JSON has ours
        return {"routing": {"total_requests": text.split(maxsplit=1)[0]}}
    figures = {name: found[1] if (found := pattern.search(text)) else "0" for name, pattern in _FIGURES.items()}
    view, agrees = {"routing": figures}, ""
    for line in text.splitlines():
        cells = re.split(r" {2,}", line.strip())
        if cells[0].startswith("WHERE PEOPLE"):
            agrees = "agrees" if cells[0] == "WHERE PEOPLE AGREE" else "disagrees"
        elif agrees and len(cells) > 3:
            words, axis, count, rate, *_ = cells
            view[words, axis, agrees] = {"count": count, "success_rate": rate}
    return view
