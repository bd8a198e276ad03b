"""Facts: what an answer says, as place → name → value, so that two answers can be compared one value at a time.

Ours must say what the original says, except where the table of differences names what ours says instead.
"""

import math

from tests.conformance.differences import differences_of

ABSENT = "absent"
FIELDS = (
    "sessions", "success_sessions", "failed_sessions", "input_tokens", "output_tokens", "total_tokens", "duration_ms",
    "known_cost_usd", "unknown_cost_sessions", "cache_read_tokens", "cache_write_tokens", "success_rate",
    "cost_per_success", "input_tokens_per_second", "output_tokens_per_second", "cache_hit_rate",
)  # fmt: skip
"""What the original says of a row; its JSON has a leading `_` before the derived ones."""

RATES = ("auto_acceptance_rate", "override_disagreement_rate", "total_requests", "total_overrides")
OUTCOMES = ("success", "stalled", "failed", "cancelled", "unknown")


def row_name(provider: str, model: str) -> str:
    """The place of a row; the totals have neither provider nor model."""
    return f"{provider}|{model}" if provider or model else "total"


def cell_name(bucket: str, axis: str, match: bool) -> str:
    """The place of a class of overrides."""
    return f"{bucket} {axis} {'agrees' if match else 'disagrees'}"


def original_facts(case) -> dict:
    """What the original says in a usage case; nothing where it refused."""
    if "report" not in case:
        return {}
    return usage_facts(case["report"]) | routing_facts(case["report"]["routing_quality"])


def usage_facts(report) -> dict:
    """The facts of a usage report, as the original's JSON or as our `to_dict()`."""
    rows = [*report["rows"], {"provider": "", "model": "", **report["totals"]}]
    facts = {
        row_name(row["provider"], row["model"]): {
            name: row[f"_{name}" if f"_{name}" in row else name] for name in FIELDS
        }
        for row in rows
    }
    window = report["window"]
    facts["window"] = {end: _instant(window[end]) if window else None for end in ("start", "end")}
    return facts


def routing_facts(report) -> dict:
    """The facts of routing quality, as the original's JSON or as our `to_dict()`."""
    facts = {"routing": {name: report[name] for name in RATES}}
    for cell in report.get("override_class_breakdown", ()):
        counts = {"count": cell["count"], **{f"{word}_outcomes": cell[f"{word}_outcomes"] for word in OUTCOMES}}
        rate = cell.get("success_rate", cell["success_outcomes"] / cell["count"])
        place = cell_name(cell["prompt_feature_bucket"], cell["axis"], cell["match"])
        facts[place] = counts | {"success_rate": rate}
    return facts


def _instant(text: str | None) -> str | None:
    """The original writes the year 1 for an open end."""
    return None if text is None or text.startswith("0001-01-01") else text


def same(one, other) -> bool:
    """Equal; floats to 1e-9 of their size."""
    if _is_number(one) and _is_number(other):
        return one == other or math.isclose(one, other, rel_tol=1e-9)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def _is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def expected_facts(case: str, original: dict) -> dict:
    """What ours must say: the original's facts with the differences of a case, each of which must differ."""
    expected = {place: dict(facts) for place, facts in original.items()}
    for rule, changes in differences_of(case):
        for place, facts in changes.items():
            if facts is None:
                assert expected.pop(place, None) is not None, f"{case}: {rule}: the original has no {place} either"
                continue
            for name, ours in facts.items():
                theirs = original.get(place, {}).get(name, ABSENT)
                assert not same(theirs, ours), f"{case}: {rule}: {place} {name} does not differ: {ours}"
                expected.setdefault(place, {})[name] = ours
    return expected


def differing(expected: dict, ours: dict) -> dict:
    """(place, name) → (what it must be, what it is), for every fact that is not the same; empty is equal."""
    found = {}
    for place in {**expected, **ours}:
        if place not in expected or place not in ours:
            found[place] = (expected.get(place, ABSENT), ours.get(place, ABSENT))
            continue
        for name in {**expected[place], **ours[place]}:
            pair = expected[place].get(name, ABSENT), ours[place].get(name, ABSENT)
            if not same(*pair):
                found[place, name] = pair
    return found
