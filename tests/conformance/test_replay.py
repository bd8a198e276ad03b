"""Replays state every fact that the original's replay states; how it looks is ours."""

import json

import pytest

from tests.conformance.command import run
from tests.conformance.data import cases, expected_text, folder
from tests.conformance.facts import expected_facts, same
from tests.conformance.origin_replay import Detail, Group, is_broken, matches, read_replay

ZONES = {"edge/replay/offset_ts.jsonl": "Etc/GMT-5"}
"""Logs with an offset: the original shows its wall clock and calls it UTC; ours shows any zone under its name."""


@pytest.mark.parametrize(("name", "case"), cases("replay"))
def test_every_fact_is_shown(name, case, outside, capsys):
    """Names, tokens, costs, times, messages, arguments, outputs and errors stand in ours, in the same order."""
    groups = read_replay(expected_text(case["expect_file"])) if case["exit"] == 0 else []
    original = {"text": {"exit": case["exit"], "shown": bool(groups)}}
    expected = expected_facts(f"replay {name}", original | {group.name: group.facts for group in groups})
    done = run(
        capsys, "replay", str(folder() / name), "--plain", "--full", "--all-messages", "--tz", ZONES.get(name, "UTC")
    )
    lines = done.out.splitlines()
    assert {"exit": done.code, "shown": bool(lines)} == expected["text"]
    places = anchors(groups, expected, lines)
    for group, start, end in zip(groups, places, [*places, len(lines)][1:], strict=True):
        for pattern in group.anywhere:
            assert any(matches(line, pattern) for line in lines), f"{group.name}: nowhere {pattern}"
        follow(group, expected[group.name], lines[start : end + 1])


def anchors(groups: list[Group], expected: dict, lines: list[str]) -> list[int]:
    """For each group the first line, behind the group before it, that states all of its facts."""
    found, start = [], 0
    for group in groups:
        wanted = {name: pattern for name, pattern in expected[group.name].items() if pattern and name in group.facts}
        place = next((i for i in range(start, len(lines)) if all(matches(lines[i], p) for p in wanted.values())), None)
        assert place is not None, f"{group.name}: no line from {start} on states {wanted}"
        changed = [p for name, p in group.facts.items() if expected[group.name][name] != p]
        assert not any(matches(lines[place], pattern) for pattern in changed), f"{group.name} does not differ"
        found.append(place)
        start = place + 1
    return found


def follow(group: Group, expected: dict, lines: list[str]) -> None:
    """The texts and JSON values of a group stand below its line, in their order."""
    start = 0
    for detail in group.details:
        if is_broken(detail):
            detail = Detail(kind="text", value=expected["output"])
        place = next((i for i in range(start, len(lines)) if states(lines[i], detail)), None)
        assert place is not None, f"{group.name}: no line behind {lines[start : start + 1]} states {detail}"
        start = place if detail.kind == "pattern" else place + 1


def states(line: str, detail: Detail) -> bool:
    """Whether one line of ours says it."""
    match detail.kind:
        case "pattern":
            return matches(line, detail.value)
        case "text":
            return line.rstrip().endswith(detail.value)
        case "cut":
            return detail.value in line
    try:
        return same(json.loads(line), detail.value)
    except ValueError:
        return False


@pytest.mark.parametrize(("name", "case"), cases("replay"))
def test_the_library_says_what_the_command_says(name, case, outside, capsys):
    """`replay(path)` yields the lines that `sessionlog replay --plain` prints."""
    from sessionlog.render.replay import replay

    assert list(replay(str(folder() / name))) == run(capsys, "replay", str(folder() / name), "--plain").out.splitlines()


@pytest.mark.parametrize(("name", "case"), cases("log"))
def test_events_as_json(name, case, outside, capsys):
    """`replay --json` gives the events with every value of the original's `log`."""
    decoder, text, theirs = json.JSONDecoder(), expected_text(case["expect_file"]), {}
    while text.strip():
        event, end = decoder.raw_decode(text.lstrip())
        theirs[f"event {len(theirs)}"] = event
        text = text.lstrip()[end:]
    expected = expected_facts(f"log {name}", theirs)
    printed = run(capsys, "replay", str(folder() / name), "--json").out.splitlines()
    ours = {f"event {number}": json.loads(line) for number, line in enumerate(printed)}
    assert ours.keys() == expected.keys()
    for place, event in expected.items():
        kept = {key: ours[place].get(key) for key in event}
        assert same(kept, event), f"{place}: {kept} is not {event}"
