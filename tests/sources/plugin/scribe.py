"""scribe: a source as another package would write it, for an agent that does not exist.

Where: `$SCRIBE_HOME`, else `~/.scribe`. Shape: `<session>.scroll`, JSON rows `{"scribe": KIND, "at": TIME, …}` of the
kinds hello (folder), ask (text), answer (id, model, in, out, text, calls), did (id, text, bad) and bye (how). Traps: a copied
scroll repeats answers under their ids. Logs are burnt after ten days.
"""

import os
import re

from sessionlog.errors import Problem
from sessionlog.events.times import parse_time
from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.reader.rows import Rows
from sessionlog.reader.walk import walk_files
from sessionlog.sources.gather import Findings, Gather, text_size
from sessionlog.sources.protocol import LogScan, Resume, Retention, Source
from sessionlog.sources.record import Record, read_name
from sessionlog.sources.transcript import Transcript

_OWN = re.compile(rb'\{\s*"scribe"\s*:\s*"')


def locate(env):
    """Where Scribe writes."""
    yield env.get("SCRIBE_HOME") or os.path.join(env.get("HOME", "/"), ".scribe")


def list_logs(place):
    """Its scrolls."""
    return walk_files([place], lambda name: name.endswith(".scroll"))


def recognises(path, head):
    """Every row begins with its kind."""
    return _OWN.search(head) is not None


def name_sessions(path):
    """A scroll is a session."""
    yield os.path.basename(path).partition(".")[0]


def _text(value):
    return value if isinstance(value, str) else ""


def _usage(row):
    counts = [read_count(row.get(name)) for name in ("in", "out")]
    return TokenUsage(input=counts[0][0], output=counts[1][0]), [issue for _, issue in counts if issue]


def _calls(row):
    calls = row.get("calls")
    return (
        [[_text(part) for part in call] for call in calls if isinstance(call, list) and len(call) == 2]
        if (isinstance(calls, list))
        else []
    )


def scan(path, resume):
    """Measure a scroll; a later scan goes on at the first row that was not whole."""
    start = resume or Resume(offset=0)
    findings = Findings()
    with Rows(path, offset=start.offset, line=start.line) as rows:
        [session_id] = name_sessions(path)
        session = Gather("scribe", session_id, path, state=start.state)
        for item in rows.read():
            _take(session, findings, rows, item)
        after = Resume(offset=rows.offset, line=rows.line, state=session.state())
        for item in rows.last():
            _take(session, findings, rows, item)
    known = session.start_ns is not None or session.records
    return LogScan(sessions=(session.session(),) if known else (), problems=findings.problems, resume=after)


def _take(session, findings, rows, row):
    if isinstance(row, Problem):
        findings.note(row)
        return
    time_ns = parse_time(row.get("at"))
    session.touch(time_ns)
    match row.get("scribe"):
        case "hello":
            session.project = read_name(row.get("folder")) or session.project
        case "ask":
            session.ask(row.get("text"))
        case "answer":
            usage, issues = _usage(row)
            findings.complain(rows.place, rows.line, *issues)
            session.add(
                Record(
                    time_ns=time_ns, provider="inkwell", model=read_name(row.get("model")) or "unknown",
                    response_model=None, usage=usage, cost_nano=None, key=_text(row.get("id")) or rows.place,
                )
            )  # fmt: skip
            for call_id, name in _calls(row):
                session.call(call_id, time_ns, name)
        case "did":
            size = text_size(row.get("text"))
            session.result(_text(row.get("id")), time_ns, failed=row.get("bad") is True, output_bytes=size)
        case "bye":
            session.status = read_name(row.get("how"))


def read(path, session_id):
    """Spell a scroll as events."""
    [own] = name_sessions(path)
    told = Transcript(session_id or own)
    with Rows(path) as rows:
        for row in rows.all():
            if isinstance(row, Problem):
                yield row
                continue
            ts = row["at"] if parse_time(row.get("at")) is not None else None
            match row.get("scribe"):
                case "hello":
                    yield told.start(ts, provider="inkwell", work_dir=read_name(row.get("folder")))
                case "ask":
                    told.hear("user", _text(row.get("text")), ts)
                case "answer":
                    calls = [{"id": call_id, "name": name, "arguments": {}} for call_id, name in _calls(row)]
                    yield from told.response(
                        ts, content=_text(row.get("text")), tool_calls=calls, usage=_usage(row)[0],
                        model=read_name(row.get("model")), provider="inkwell", key=_text(row.get("id")) or rows.place,
                    )  # fmt: skip
                case "did":
                    yield told.result(ts, _text(row.get("id")), _text(row.get("text")), failed=row.get("bad") is True)
                case "bye":
                    yield told.end(ts, read_name(row.get("how")) or "unknown")


SOURCE = Source(
    id="scribe",
    title="Scribe",
    parser=1,
    locate=locate,
    list_logs=list_logs,
    recognises=recognises,
    scan=scan,
    read=read,
    name_sessions=name_sessions,
    retention=lambda env: Retention(days=10, setting="burn_after in ~/.scribe/ink.ini"),
)
