"""JSON may be written in many ways: whichever writer, exporter or editor a log has passed through, it tells the same."""

import json
from datetime import UTC, datetime

import pytest

from sessionlog.analytics.usage import aggregate_usage
from tests.sources.homes import all_cases, build_home, environment, truth_of

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
WHOLE = [case for case in all_cases() if "problems" not in truth_of(case) or not truth_of(case)["problems"]]


def turned(value):
    """The same value, the keys of its objects in the opposite order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(one) for one in value] if isinstance(value, list) else value


def spaced(row):
    """As Python's exporters and editors on Windows write it."""
    return json.dumps(row).encode() + b"\r\n"


def dense(row):
    """As JavaScript writes it."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def reordered(row):
    """As a map without an order writes it, in the widest way."""
    return json.dumps(turned(row), separators=(" ,\t", " : ")).encode() + b"\n"


def respell(home, spelling):
    """Rewrite the rows of each log, except those that are no JSON."""
    for path in (path for path in home.rglob("*.jsonl") if path.is_file()):
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
        path.write_bytes(b"".join(_respelt(line, spelling) for line in lines if line))


def _respelt(line, spelling):
    try:
        return spelling(json.loads(line))
    except ValueError:
        return line + b"\n"


def by_turns():
    """Each case in each spelling; in the quick tier in one of them."""
    for turn, case in enumerate(WHOLE):
        for number, spelling in enumerate((spaced, dense, reordered)):
            is_quick = number == turn % 3
            name = f"{case}-{spelling.__name__}"
            yield pytest.param(case, spelling, marks=() if is_quick else pytest.mark.slow, id=name)


@pytest.mark.parametrize(("case", "spelling"), list(by_turns()))
def test_the_spelling_does_not_matter(case, spelling, tmp_path):
    """Spaces, escapes, line ends and the order of keys change no count."""
    home = build_home(case, tmp_path)
    respell(home, spelling)
    filters = {"source": [case.split("/")[0]]}
    report = aggregate_usage(None, by=("provider", "model"), env=environment(case, home), now=NOW, filters=filters)
    found = {
        (r.provider, r.model): (r.requests, r.input_tokens, r.output_tokens, r.cache_read_tokens) for r in report.rows
    }
    assert found == {
        (row["provider"], row["model"]): tuple(
            row.get(name, 0) for name in ("requests", "input_tokens", "output_tokens", "cache_read_tokens")
        )
        for row in truth_of(case)["rows"]
    }
