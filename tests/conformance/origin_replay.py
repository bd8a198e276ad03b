"""The original's replay text, read back as facts: what it says, in order, without how it looks.

A text is a list of groups: the session's head, a request, an answer, a tool call, the end. Each group has facts that
stand together (on one line of ours), and texts and JSON values that follow in their order. What the original prints
for an absent name or text (`Work dir: `) is no fact; a zero that stands for an absent number is one, and belongs in
the table of differences.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from sessionlog.render.escape import terminal

CUT = "...[truncated]"
_HEAD = {
    "session": re.compile(r"=== Session (?P<id>.*) ==="),
    "system": re.compile(r"\[System\]"),
    "user": re.compile(r"\[User\]"),
    "request": re.compile(r"\[LLM Request\] \((?P<messages>\d+) messages, (?P<tools>\d+) tools\)"),
    "answer": re.compile(
        r"\[Assistant\] \((?P<ms>\d+)ms, (?P<input>\d+) in / (?P<output>\d+) out tokens(?:, \$(?P<cost>\d+\.\d{4}))?\)"
    ),
    "tool": re.compile(r"  > (?P<tool>\S.*) \((?P<ms>\d+)ms\)"),
    "end": re.compile(r"=== End \((?P<status>.*)\) ==="),
}
_ROLES = {"system": "system ▸", "user": "you ▸", "assistant": "assistant ▸", "tool result": "tool ▸"}
_SAID = re.compile(r"  \[(system|user|assistant|tool result)\] (.*)")
_CALLED = re.compile(r"  \[assistant tool_call\] (.*?)\((.*)\)", re.DOTALL)
_CALLS = re.compile(r"\[(\d+) tool call\(s\)\]")


@dataclass(frozen=True, kw_only=True)
class Detail:
    """Something that a line of ours says.

    Attributes:
        kind: `text` (a line ends with it), `cut` (a line has it), `json` (a line is this value), `pattern`.
        value: The text, the JSON value, or the regular expression.
    """

    kind: str
    value: object


@dataclass(frozen=True, kw_only=True)
class Group:
    """Facts that belong together.

    Attributes:
        name: `answer 2`: the kind and its number in the text, from 1.
        facts: Name → regular expression; one line of ours matches them all.
        details: What comes below that line, in order.
        anywhere: Regular expressions each of which some line matches, wherever it stands.
    """

    name: str
    facts: dict[str, str]
    details: list[Detail] = field(default_factory=list)
    anywhere: list[str] = field(default_factory=list)


def read_replay(text: str) -> list[Group]:
    """Read a replay text of the original."""
    groups: list[Group] = []
    numbers: dict[str, int] = {}
    for kind, values, lines in _sections(text.split("\n")):
        numbers[kind] = numbers.get(kind, 0) + 1
        facts, details, anywhere = _READERS[kind](values, lines)
        if facts:
            groups.append(Group(name=f"{kind} {numbers[kind]}", facts=facts, details=details, anywhere=anywhere))
    return groups


def _sections(lines: list[str]) -> Iterator[tuple[str, dict[str, str], list[str]]]:
    kind, values, body = "", {}, []
    for line in lines:
        found = next(((k, m) for k, pattern in _HEAD.items() if (m := pattern.fullmatch(line))), None)
        if found is None:
            assert kind or not line, f"a text begins with {line!r}"
            body.append(line)
            continue
        if kind:
            yield kind, values, body
        kind, values, body = found[0], {k: v for k, v in found[1].groupdict().items() if v is not None}, []
    if kind:
        yield kind, values, body


def _session(values, lines):
    head = _labels(lines)
    provider, _, model = head.pop("Provider").partition(" | Model: ")
    iterations, _, folder = head.pop("Max iterations").partition(" | Work dir: ")
    anywhere = [rf"(━━|logged as) +{re.escape(values['id'])}( |$)"]
    anywhere += [f"━━ .*{re.escape(' / '.join(name for name in (provider, model) if name))} .*━━"]
    anywhere += [f"━━ .* {re.escape(folder)} ━━"] if folder else []
    anywhere += [rf"limit +{iterations} iteration"] if iterations != "0" else []
    anywhere += _routing(head)
    clock = re.escape(head.pop("Time").removesuffix(" UTC"))
    assert not head, f"unread lines of a head: {head}"
    return {"session": "^━━ ", "time": clock}, [], anywhere


def _routing(head: dict[str, str]) -> list[str]:
    patterns = []
    if endpoint := head.pop("Selected endpoint", None):
        patterns.append(rf"endpoint {re.escape(endpoint)}\b")
    if instance := head.pop("Selected server instance", None):
        patterns.append(rf"instance {re.escape(instance)}\b")
    if sticky := head.pop("Sticky", None):
        key, assignment, reason, bonus = re.fullmatch(
            r"key=(\w+) assignment=(.*?)(?: reason=(.*?))?(?: bonus=(-?[\d.]+))?", sticky
        ).groups()
        patterns.append(rf"sticky +key {key} · assignment {re.escape(assignment)}")
        patterns += [rf"sticky .*{re.escape(reason)}"] if reason else []
        patterns += [rf"sticky .*bonus {_to_places(bonus)}"] if bonus else []
    if load := head.pop("Utilization", None):
        source, freshness, numbers = re.fullmatch(r"source=(.*) freshness=(\S+)(.*)", load).groups()
        patterns.append(rf"utilization +source {re.escape(source)} · .*{re.escape(freshness)}")
        for name, number in re.findall(r" (\w+)=(-?[\d.]+)", numbers):
            said = rf"cache pressure {_to_places(number)}" if name == "cache_pressure" else rf"\b{number} {name}"
            patterns.append(rf"utilization .*{said}")
    return patterns


def _to_places(number: str) -> str:
    """A pattern for a number that was rounded to hundredths; the caller's cases have no carry."""
    whole, _, places = number.partition(".")
    return rf"{whole}(?:\.{places.rstrip('0')}\d*)?" if places.rstrip("0") else rf"{whole}\b"


def _prompt(label: str):
    def read(values, lines):
        details = _text(lines)
        if not details:
            return {}, [], []
        return {"speaker": f"^{label}", "text": re.escape(details[0].value) + "$"}, details[1:], []

    return read


def _request(values, lines):
    facts = {
        "messages": rf"^▹ request .*\b{values['messages']} message",
        "tools": rf"\b{values['tools']} tool",
    }
    return facts, list(_messages(lines)), []


def _messages(lines: list[str]) -> Iterator[Detail]:
    """Messages of a request; lines without a role belong to the message above."""
    call = ""
    for line in lines:
        if call:
            call += f"\n{line}"
        elif line.startswith("  [assistant tool_call] "):
            call = line
        if call:
            if not call.endswith(")"):
                continue
            name, arguments = _CALLED.fullmatch(call).groups()
            call = ""
            yield Detail(kind="pattern", value=rf"⚙ {re.escape(name)}\b")
            if arguments:
                yield Detail(kind="json", value=json.loads(arguments))
            continue
        said = _SAID.fullmatch(line)
        if said:
            yield Detail(kind="pattern", value=f"^{_ROLES[said[1]]}")
            line = said[2]
        yield from _text([line])


def _answer(values, lines):
    facts = {
        "latency": rf"\b{values['ms']} ms\b",
        "tokens": rf"\b{values['input']} in\b.* {values['output']} out\b",
    }
    if "cost" in values:
        facts["cost"] = _dollars(values["cost"])
    calls = [match[1] for line in lines if (match := _CALLS.fullmatch(line))]
    if calls:
        facts["calls"] = rf"\b{calls[-1]} tool call"
    return {"answer": "^[◂✘]"} | facts, _text([line for line in lines if not _CALLS.fullmatch(line)]), []


def _tool(values, lines):
    facts = {"tool": rf"⚙ {re.escape(values['tool'])}\b", "duration": rf"\b{values['ms']} ms\b"}
    arguments = lines[0].removeprefix("    Input:  ")
    output = [lines[1].removeprefix("    Output: "), *lines[2:]]
    for index, line in enumerate(output):
        if line.startswith("    Error:  "):
            facts["error"] = rf"✘ {re.escape(line.removeprefix('    Error:  '))}"
            output = output[:index]
    details = [Detail(kind="json", value=json.loads(arguments))] if arguments else []
    return facts, details + _text(output), []


def _end(values, lines):
    head = _labels(lines)
    duration, tokens, cost = head.pop("Duration").split(" | ")
    spent = re.fullmatch(r"Tokens: (\d+) in / (\d+) out", tokens)
    facts = {
        "status": rf"━━ {re.escape(values['status'])}\b",
        "duration": rf"\b{duration.removesuffix('ms')} ms\b",
        "tokens": rf"\b{spent[1]} in\b.* {spent[2]} out\b",
        "cost": {"unknown": "cost unknown", "$0 (local)": re.escape("$0 (free)")}.get(
            cost.removeprefix("Cost: "), _dollars(cost.removeprefix("Cost: $"))
        ),
    }
    anywhere = _routing(head)
    if model := head.pop("Model", None):
        anywhere.append(rf"(━━ .*/ |model +){re.escape(model)}\b")
    if error := head.pop("Error", None):
        anywhere.append(f"^✘ {re.escape(error)}")
    anywhere += [rf"metadata .*{re.escape(pair)}" for pair in head.pop("Metadata", "").split(" ") if pair]
    assert not head, f"unread lines of an end: {head}"
    return facts, [], anywhere


def _dollars(amount: str) -> str:
    """A marker for an amount that was rounded to four places; see `matches`."""
    return f"${amount}"


def _labels(lines: list[str]) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in lines if line)


def _text(lines: list[str]) -> list[Detail]:
    """The lines of a text that say something; indentation is layout, and blank lines are."""
    details = []
    for line in lines:
        text = line.strip()
        if text.endswith(CUT):
            details.append(Detail(kind="cut", value=_shown(text.removesuffix(CUT))))
        elif text:
            details.append(Detail(kind="text", value=_shown(text)))
    return [detail for detail in details if detail.value]


def _shown(text: str) -> str:
    """What a terminal would obey or hide is escaped in ours; the halves of a cut character stay, to be seen."""
    halves = len(text) - len(text.rstrip("".join(map(chr, range(0xDC80, 0xDD00)))))
    return terminal(text[: len(text) - halves], tab=True).rstrip() + text[len(text) - halves :]


_READERS = {
    "session": _session,
    "system": _prompt("system ▸"),
    "user": _prompt("you ▸"),
    "request": _request,
    "answer": _answer,
    "tool": _tool,
    "end": _end,
}


def matches(line: str, pattern: str) -> bool:
    """Whether a line of ours states a fact; `$1.2346` is stated by any amount that rounds to it."""
    if not re.fullmatch(r"\$\d+\.\d{4}", pattern):
        return re.search(pattern, line) is not None
    return any(f"${float(amount):.4f}" == pattern for amount in re.findall(r"\$(\d+\.\d+)", line))


def is_broken(detail: Detail) -> bool:
    """The original cut a character in two."""
    return isinstance(detail.value, str) and any("\udc80" <= char <= "\udcff" for char in detail.value)
