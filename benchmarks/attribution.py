"""Where a tool differs from the truth, and why: the traps that it is known to fall for are subtracted.

What is left would be a flaw of the truth, or news.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.contestants import CLASSES, COUNTED, ccusage_tokens
from benchmarks.measure import print_table

CAUSES = {
    ("ccusage", "claude-code"): {
        "rows without request id": "Bedrock rows have only a message id: each row of a response counts as one",
        "stale progress row": "a progress echo of a sub-agent's early row beats the sub-agent's own last row",
        "split of zeros": "cache_creation {0, 0} hides cache_creation_input_tokens",
    },
    ("ccusage", "codex"): {
        "stale count": "a snapshot out of order adds the response before it once more",
        "inherited count after a stale one": "a replay ends with such a snapshot; the right count after it is added",
        "fresh sub-agent's first count repeated within a second": "both are taken for a replay of its parent's, and dropped",
        "packed rollout": ".jsonl.zst is not read (copies of its rows in branches are: not exact)",
    },
    ("tokscale", "claude-code"): {
        "side question's replay": "the rows that a side question repeats under other request ids count again",
        "only in progress rows": "progress echoes are not read: a sub-agent whose own log is lost is lost with it",
    },
    ("tokscale", "codex"): {
        "packed rollout": ".jsonl.zst is not read (copies of its rows in branches are: not exact)",
    },
}
"""Tool and source → the traps (agent_homes.Truth) that it falls for, measured with one small log each."""


def verdict(truth: Mapping[str, int], found: Mapping[str, int] | None) -> str:
    """`exact`, or by how much the totals that a tool has differ."""
    if found is None:
        return "no answer"
    wrong = [name for name in COUNTED if name in found and found[name] != truth[name]]
    parts = [
        f"{name.removesuffix('_tokens')} {(found[name] - truth[name]) / truth[name]:+.3%}" if truth[name] else name
        for name in wrong
    ]
    return ", ".join(parts) or "exact"


def explain_ours(truth: Mapping[str, Any], totals: Mapping[str, int], by_day_model: Iterable[dict[str, Any]]) -> None:
    """Print where our totals, and our days and models, differ from the truth."""
    print("\nours against the truth:")
    _print_differences(truth["totals"], totals, COUNTED)
    found = {f"{row['day']} {row['model']}": row for row in by_day_model}
    wrong = _unequal(truth["by_day_model"], found)
    print(f"days and models: {'EXACT' if not wrong else f'{len(wrong)} differ'}")
    _print_first(wrong)


def explain_peer(tool: str, source: str, truth: Mapping[str, Any], totals: Mapping[str, int], report: Any) -> None:
    """Print by how much a peer differs from the truth, and which traps make up the difference."""
    causes = CAUSES[tool, source]
    flaws = {trap: truth["traps"][trap] for trap in causes if trap in truth["traps"]}
    names = [name for name in CLASSES if name in totals]
    print(f"\n{tool} against the truth:")
    _print_differences(truth["totals"], totals, names)
    if any(totals[name] != truth["totals"][name] for name in names):
        rows = [[trap, *(f"{sums[name]:+,}" for name in names)] for trap, sums in flaws.items()]
        left = [totals[name] - truth["totals"][name] - sum(trap[name] for trap in flaws.values()) for name in names]
        print("why, as far as known:")
        print_table(["", *names], [*rows, ["UNEXPLAINED", *(f"{n:+,}" for n in left)]])
        for trap in flaws:
            print(f"  {trap}: {causes[trap]}")
    if "daily" in report:
        _print_days(truth, report["daily"])


def _print_days(truth: Mapping[str, Any], days: Iterable[dict[str, Any]]) -> None:
    found = {}
    for day in days:
        models = day.get("models") or {row["modelName"]: row for row in day["modelBreakdowns"]}
        found |= {f"{day['date']} {model}": ccusage_tokens(row) for model, row in models.items()}
    wrong = _unequal(truth["by_day_model"], found)
    print(f"days and models that differ: {len(wrong)} of {len(truth['by_day_model'])}")
    across = truth["kinds"].get("across midnight", 0)
    if across:
        print(f"({across} responses run across midnight; ccusage takes the day of the last row, the truth the first)")
    _print_first(wrong)


def _print_first(lines: Sequence[str]) -> None:
    for line in lines[:10]:
        print(f"  {line}")


def _print_differences(truth: Mapping[str, int], found: Mapping[str, int], names: Sequence[str]) -> None:
    if all(found.get(name, 0) == truth[name] for name in names):
        print(f"totals: EXACT ({', '.join(f'{name} {truth[name]:,}' for name in names)})")
        return
    rows = []
    for name in names:
        difference = found.get(name, 0) - truth[name]
        share = f"{difference / truth[name]:+.4%}" if truth[name] else ""
        rows.append([name, f"{truth[name]:,}", f"{found.get(name, 0):,}", f"{difference:+,}", share])
    print_table(["totals", "truth", "found", "difference", ""], rows)


def _unequal(truth: Mapping[str, Mapping[str, int]], found: Mapping[str, Mapping[str, int]]) -> list[str]:
    """One line for each group whose tokens differ."""
    lines = []
    for key in sorted(truth.keys() | found.keys()):
        wanted, seen = truth.get(key, {}), found.get(key, {})
        names = [name for name in CLASSES if name in seen or not seen]
        differences = {name: seen.get(name, 0) - wanted.get(name, 0) for name in names}
        if any(differences.values()):
            lines.append(f"{key}: " + ", ".join(f"{name} {n:+,}" for name, n in differences.items() if n))
    return lines
