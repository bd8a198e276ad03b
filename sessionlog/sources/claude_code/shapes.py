r"""How Claude Code spells the rows that fill its transcripts, byte for byte, and what such bytes say.

A pattern that matches proves what it covers: inside a JSON text every quote is escaped, so a piece of a row with bare
quotes is structure, never text. Names that the patterns capture are plain ASCII and need no decoding.
"""

from __future__ import annotations

import re

from sessionlog.events.times import SECOND, parse_time

Counts = tuple[int, int, int, int, int, int]
"""The tokens that one row tells: output, total, input, cache_read, cache_write, cache_write_1h. The greatest counts."""

_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NAME = rb"([!#-\[\]-~]{1,200}+)"
_COUNT = rb"(\d{1,15}+)"
_SPLIT = (
    rb'"cache_creation":\{"ephemeral_5m_input_tokens":' + _COUNT + rb',"ephemeral_1h_input_tokens":' + _COUNT + rb"\}"
)

PARENT = b'{"parentUuid":"'
HEAD_AT = len(PARENT) + 36 + 2
"""Where a row with a parent says whose it is."""

HEAD = re.compile(
    rb'\{"parentUuid":(?:null|"[^"\\]*+"),((?:"isSidechain":(?:true|false),|"(?:userType|cwd|sessionId|version|gitBranch'
    rb'|agentId|slug|agentType|attributionAgent|teamName|agentName|entrypoint)":' + _TEXT + rb",)++)"
)  # fmt: skip
"""The beginning of a row; its group is what a session's rows share."""

BLOCKS = b'[{"type":"'

OPENING = re.compile(
    rb'"message":\{"model":"(?!<)' + _NAME + rb'","id":"' + _NAME + rb'","type":"message","role":"assistant",'
    rb'"content":' + re.escape(BLOCKS)
)  # fmt: skip
"""Behind the head of an assistant's row: model, message id."""

BLOCK = re.compile(
    rb't(?:ext"|hinking"|ool_use","id":"' + _NAME + rb'","name":"' + _NAME + rb'","input":\{(?:")?)'
)  # fmt: skip
"""Behind the opening, the first block of content: a tool call's id and name."""

_USAGE = (
    rb'\}\],"stop_reason":(?:null|"([a-z_]++)"),"stop_sequence":(?:null|"[^"\\]*+"),"usage":\{"input_tokens":' + _COUNT
    + rb',"cache_creation_input_tokens":' + _COUNT + rb',"cache_read_input_tokens":' + _COUNT
    + rb",(?:" + _SPLIT + rb',|)"output_tokens":' + _COUNT
    + rb'(?:,"server_tool_use":(?:null|\{[^{}]*+\})|)(?:,"service_tier":(?:null|"standard")|)(?:,' + _SPLIT
    + rb'|)(?:,"inference_geo":(?:null|"[^"\\]*+")|)(?:,"iterations":(?:null|\[[^][]*+\])|)'
    rb'(?:,"speed":(?:null|"standard")|)\}(?:,"c(?:ontainer|ontext_management)":null)*+\},(?:"requestId":"' + _NAME
    + rb'",|)'
)  # fmt: skip

_STAMPED = rb'[0-9a-f-]{36}","timestamp":"(?s:.{24})"'

TAIL = re.compile(_STAMPED + rb"\}\n\Z")
"""The last bytes of a row, where its own id begins. `time_at` has to look at the time."""

TAIL_SIZE = 36 + len('","timestamp":"2026-11-10T10:05:12.345Z"}\n')

ENDING = re.compile(_USAGE + rb'"type":"assistant","uuid":"' + TAIL.pattern)
"""From the end of an assistant's content to the end of its row; not of one with prices of its own."""

ECHO = re.compile(
    rb'"type":"progress","data":\{"type":"agent_progress","message":\{"type":"assistant","timestamp":"([^"\\]{24})",'
)
"""Behind the head of a row that embeds a sub-agent's: its time. An opening follows."""

ECHO_ENDING = re.compile(
    _USAGE + rb'"uuid":"[^"\\]*+"\},(?:"prompt":' + _TEXT + rb',)?"agentId":"[^"\\]*+"\},(?:"toolUseID":"[^"\\]*+",)?'
    rb'(?:"parentToolUseID":"[^"\\]*+",)?"uuid":"' + TAIL.pattern
)  # fmt: skip
"""An ending of such a row, with the groups of an ending."""

USAGE = b'"usage":{'

STOP, OUTPUT, REQUEST = 1, 7, 10
"""Groups of an ending."""

STOPS = {
    name and name.encode(): name
    for name in (
        None, "end_turn", "stop_sequence", "tool_use", "max_tokens", "pause_turn", "refusal",
        "model_context_window_exceeded",
    )
}  # fmt: skip
"""Why a model stops."""

_NUMBERS = (2, 3, 4, 5, 6, 8, 9)  # all the others that count

COPY = re.compile(
    rb'\}\]\},"uuid":"' + _STAMPED + rb'(?:\}\n\Z|,"toolUseResult":'
    rb'(?:\{"stdout":"|\{"type":"text","file":\{"filePath":"[^"\\]*+","content":"|"Error: )?)'
)  # fmt: skip
"""From the end of a tool's result to where its text is often told once more."""

NO_ECHO = re.compile(rb'"type":"progress","data":\{"type":"(?!agent_progress")[a-z_]++",')
"""Behind the head of a row that tells of progress, but not of a sub-agent's."""

SIMPLE_SYSTEM = re.compile(rb'"type":"system","subtype":"[a-z_]++",(?:"durationMs":\d++,)?"uuid":"' + TAIL.pattern)
"""Behind the head of a row that tells nothing but its time."""

RESULT = b'"type":"user","message":{"role":"user","content":[{"tool_use_id":"'
"""Behind the head of a row with a tool's result: the call's id follows."""

CONTENT = b'","type":"tool_result","content":"'
"""Behind that id: the result's text follows."""

PROMPT = re.compile(
    rb'"type":"user","message":\{"role":"user","content":" *+(?=[!-~])(?!["\\]|Caveat: |\[Request|<(?:command-|local-'
    rb"|bash-|system-|ide_|user-|task-))"
)
"""Behind the head of a row with words of the user's own, no wrapper of the CLI's."""

PROMPT_END = re.compile(rb'"\},"uuid":"' + TAIL.pattern)

ROW = b'{"parentUuid"'
"""Where a row begins."""

USE = b'"type":"tool_use"'
"""What a tool call says of itself."""

STAMP_SIZE = len('2026-11-10T10:05:12.345Z"}\n')
"""From a row's time to its end."""

_SIXTY = {b"%02d:" % number: number for number in range(60)}
_SECONDS = {b"%02d." % second: second * SECOND for second in range(60)}
_MILLIS = {b"%03dZ" % milli: milli * 1_000_000 for milli in range(1000)}
_MOST = 4096

_days: dict[bytes, int] = {}
_minutes: dict[bytes, int] = {}  # rows share their minutes, and a look-up costs a tenth of the arithmetic


def time_at(line: bytes, at: int) -> int | None:
    """Return the time that is told in milliseconds at a place; None for one in any other spelling."""
    try:
        return _minutes[line[at : at + 17]] + _SECONDS[line[at + 17 : at + 20]] + _MILLIS[line[at + 20 : at + 24]]
    except KeyError:
        return time_at(line, at) if _learn(line[at : at + 17]) else None


def _learn(minute: bytes) -> bool:
    """Make a minute known; False when it is known or none."""
    day, hours, minutes = minute[:11], _SIXTY.get(minute[11:14], 24), _SIXTY.get(minute[14:])
    if hours >= 24 or minutes is None or minute in _minutes:
        return False
    if day not in _days:
        begun = parse_time(day.decode("latin-1") + "00:00:00Z") if day.endswith(b"T") else None
        if begun is None:
            return False
        _put(_days, day, begun)
    _put(_minutes, minute, _days[day] + (hours * 60 + minutes) * 60 * SECOND)
    return True


def _put(known: dict[bytes, int], name: bytes, time_ns: int) -> None:
    if len(known) >= _MOST:
        known.clear()
    known[name] = time_ns


def same_counts(ending: re.Match[bytes], other: re.Match[bytes]) -> bool:
    """Whether two endings tell the same of all but the output."""
    return ending is other or ending.group(*_NUMBERS) == other.group(*_NUMBERS)


def counts_of(ending: re.Match[bytes], output: int) -> Counts:
    """Return the tokens of an assistant's row; the last of two splits counts, as in any JSON."""
    in_, flat, read, minutes_5, hour, late_5, late_hour = ending.group(*_NUMBERS)
    input_, cache_read, cache_write = int(in_), int(read), int(flat)
    cache_write_1h = int(late_hour or hour or 0)
    cache_write = max(cache_write, int(late_5 or minutes_5 or 0) + cache_write_1h)
    return output, input_ + cache_read + cache_write + output, input_, cache_read, cache_write, cache_write_1h
