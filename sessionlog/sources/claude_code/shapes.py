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

OPENING = re.compile(
    rb'"message":\{"model":"(?!<)' + _NAME + rb'","id":"' + _NAME + rb'","type":"message","role":"assistant",'
    rb'"content":\[\{"type":"'
)  # fmt: skip
"""Behind the head of an assistant's row: model, message id."""

BLOCK = re.compile(
    rb't(?:ext"|hinking"|ool_use","id":"' + _NAME + rb'","name":"' + _NAME + rb'","input":\{(?:")?)'
)  # fmt: skip
"""Behind the opening, the first block of content: a tool call's id and name."""

ENDING = re.compile(
    rb'\}\],"stop_reason":(?:null|"([a-z_]++)"),"stop_sequence":(?:null|"[^"\\]*+"),"usage":\{"input_tokens":' + _COUNT
    + rb',"cache_creation_input_tokens":' + _COUNT + rb',"cache_read_input_tokens":' + _COUNT
    + rb",(?:" + _SPLIT + rb',)?"output_tokens":' + _COUNT
    + rb'(?:,"server_tool_use":(?:null|\{[^{}]*+\}))?(?:,"service_tier":(?:null|"standard"))?(?:,' + _SPLIT
    + rb')?(?:,"inference_geo":(?:null|"[^"\\]*+"))?(?:,"iterations":(?:null|\[[^][]*+\]))?'
    rb'(?:,"speed":(?:null|"standard"))?\}(?:,"c(?:ontainer|ontext_management)":null)*+\},(?:"requestId":"' + _NAME
    + rb'",)?"type":"assistant","uuid":"[^"\\]*+","timestamp":"[^"\\]{24}"\}\n\Z'
)  # fmt: skip
"""From the end of an assistant's content to the end of its row; not of one with prices of its own."""

STOP, OUTPUT, REQUEST = 1, 7, 10
NUMBERS = (2, 3, 4, 5, 6, 8, 9)
"""Groups of an ending."""

COPY = re.compile(
    rb'\}\]\},"uuid":"[^"\\]{36}","timestamp":"[^"\\]{24}"(?:\}\n\Z|,"toolUseResult":'
    rb'(?:\{"stdout":"|\{"type":"text","file":\{"filePath":"[^"\\]*+","content":"|"Error: )?)'
)  # fmt: skip
"""From the end of a tool's result to where its text is often told once more."""

NO_ECHO = re.compile(rb'"type":"progress","data":\{"type":"(?!agent_progress")[a-z_]++",')
"""Behind the head of a row that tells of progress, but not of a sub-agent's."""

SIMPLE_SYSTEM = re.compile(
    rb'"type":"system","subtype":"[a-z_]++",(?:"durationMs":\d++,)?"uuid":"[^"\\]{36}","timestamp":"[^"\\]{24}"\}\n\Z'
)
"""Behind the head of a row that tells nothing but its time."""

PROMPT = re.compile(rb'"type":"user","message":\{"role":"user","content":"(?=[A-Za-z0-9#*-])(?!Caveat)')
"""Behind the head of a row with words of the user's own, no wrapper of the CLI's."""

PROMPT_END = re.compile(rb'"\},"uuid":"[^"\\]{36}","timestamp":"[^"\\]{24}"\}\n\Z')

ROW = re.compile(rb'U(?=uid")(?<=\{"parentU)')
"""Where a row begins. The search is for its rarest letter, which the C library does ten times as fast."""

CALL = re.compile(rb'_(?=use")(?<="type":"tool_)')
"""A block that is a tool call."""

_SECONDS = {b"%02d." % second: second * SECOND for second in range(60)}
_MILLIS = {b"%03dZ" % milli: milli * 1_000_000 for milli in range(1000)}
_MOST_MINUTES = 4096

_minutes: dict[bytes, int] = {}  # rows share their minutes, and a look-up costs a tenth of the arithmetic


def time_at(line: bytes, at: int) -> int | None:
    """Return the time that is told in milliseconds at a place; None for one in any other spelling."""
    try:
        return _minutes[line[at : at + 17]] + _SECONDS[line[at + 17 : at + 20]] + _MILLIS[line[at + 20 : at + 24]]
    except KeyError:
        minute = line[at : at + 17]
    time_ns = parse_time(minute.decode("latin-1") + "00.000Z")
    if time_ns is None or minute in _minutes or not minute.endswith(b":"):
        return None
    if len(_minutes) >= _MOST_MINUTES:
        _minutes.clear()
    _minutes[minute] = time_ns
    return time_at(line, at)


def counts_of(ending: re.Match[bytes]) -> Counts:
    """Return the tokens of an assistant's row; the last of two splits counts, as in any JSON."""
    _, in_, flat, read, minutes_5, hour, out, late_5, late_hour, _ = ending.groups()
    input_, output, cache_read, cache_write = int(in_), int(out), int(read), int(flat)
    cache_write_1h = int(late_hour or hour or 0)
    cache_write = max(cache_write, int(late_5 or minutes_5 or 0) + cache_write_1h)
    return output, input_ + cache_read + cache_write + output, input_, cache_read, cache_write, cache_write_1h
