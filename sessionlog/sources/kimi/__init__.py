"""kimi: Kimi CLI and its successor Kimi Code, a `wire.jsonl` for each session and one for each of its sub-agents.

Where: Kimi CLI `$KIMI_SHARE_DIR` or `$KIMI_DATA_DIR`, else `~/.kimi`: `sessions/<md5 of folder>/<id>/wire.jsonl`, and
below it `subagents/<id>/wire.jsonl`. Kimi Code `$KIMI_CODE_HOME`, else `~/.kimi-code`:
`sessions/wd_<project>/<session>/agents/<main or id>/wire.jsonl`. Shape (`kimi.wire` tells the two dialects apart):

    {"timestamp": s, "message": {"type": "StatusUpdate", "payload": {"message_id",
        "token_usage": {"input_other", "output", "input_cache_read", "input_cache_creation"}}}}
    {"type": "usage.record", "time": ms, "model", "usage": {"inputOther", "output", "inputCacheRead", …}}

Classes are disjoint; reasoning is a part of the output and not told apart. Traps: a StatusUpdate may come again with
the same message id (the greatest counts), and most of them have no tokens. The parent repeats its sub-agents' lines in
`SubagentEvent`s; older versions write them nowhere else. Forks copy the file. Kimi CLI does not log the model: the
configured default stands in for it. In Kimi Code `step.end` repeats the tokens of `usage.record`; records of the scope
`session` are compactions, which are billed too; `model` may be a reference, then `llm.request` has the name. Ids of
tool calls repeat. Failed calls are not logged. Seen: wire protocols 1.0 to 1.10 of the CLI, 1.0 to 1.5 of Kimi Code.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sessionlog.errors import Problem
from sessionlog.events.damaged import Flaw, find_objects
from sessionlog.events.envelope import Event
from sessionlog.reader.rows import Row, Rows
from sessionlog.reader.walk import walk_files
from sessionlog.settings import user_home
from sessionlog.sources.gather import Findings, Gather, server_of
from sessionlog.sources.kimi.events import read_events
from sessionlog.sources.kimi.place import Place, agent_kind, default_model, files_beside, place_of, work_dir
from sessionlog.sources.kimi.steps import Steps
from sessionlog.sources.kimi.wire import SUBAGENT, Move, matters, read_move
from sessionlog.sources.protocol import Env, LogScan, Resume, Source
from sessionlog.sources.record import MAIN, UNKNOWN, Record, Standing, read_name

_ID = "kimi"
_FILE = "wire.jsonl"
_HEAD_LINES = 20
_CLI_ONLY = frozenset({"TurnBegin", "SteerInput", "StepBegin", "StatusUpdate", "SubagentEvent", "ContentPart"})
_CODE_ONLY = frozenset(
    {"context.append_loop_event", "usage.record", "turn.prompt", "config.update", "permission.set_mode"}
)


def _locate(env: Env) -> Iterable[str]:
    home = user_home(env)
    cli = env.get("KIMI_SHARE_DIR") or env.get("KIMI_DATA_DIR") or os.path.join(home, ".kimi")
    code = env.get("KIMI_CODE_HOME") or os.path.join(home, ".kimi-code")
    roots = [root for root in (*cli.split(","), code) if root]
    return tuple(dict.fromkeys(os.path.join(root, "sessions") for root in roots))


def _list_logs(place: str) -> Iterator[str | Problem]:
    return walk_files([place], lambda name: name == _FILE)


def _recognises(path: str, head: bytes) -> bool:
    """By the first lines that are of one dialect only; the header alone may be anybody's."""
    if not os.path.basename(path).endswith(".jsonl"):
        return False
    for line in head.split(b"\n")[:_HEAD_LINES]:
        for item in find_objects(line):
            if not isinstance(item, Flaw) and _is_ours(item[0]):
                return True
    return False


def _is_ours(row: Mapping[str, Any]) -> bool:
    message = row.get("message")
    if isinstance(message, dict) and isinstance(message.get("payload"), dict) and "timestamp" in row:
        return read_name(message.get("type")) in _CLI_ONLY
    if row.get("type") == "metadata":
        return isinstance(row.get("protocol_version"), str)
    return read_name(row.get("type")) in _CODE_ONLY


class _Scan:
    """One pass over one file, or over what was appended to it."""

    def __init__(self, path: str, rows: Rows, state: Mapping[str, Any]) -> None:
        self._path, self._rows = path, rows
        self._place: Place = place_of(path)
        self._gather = Gather(_ID, self._place.session_id, path, state=state.get("gather"))
        self._gather.turns = self._gather.turns or 0
        self._steps = Steps(self._place, default_model(self._place), state.get("steps"))
        self._kind: str = state.get("kind") or agent_kind(self._place) or SUBAGENT
        if not state:
            self._gather.project = work_dir(self._place)
        self.findings = Findings()

    def state(self) -> dict[str, Any]:
        return {"gather": self._gather.state(), "steps": self._steps.state(), "kind": self._kind}

    def take(self, row: Row | Problem) -> None:
        if isinstance(row, Problem):
            self.findings.note(row)
            return
        move = read_move(row)
        if move is None:
            return
        self._gather.touch(move.time_ns)
        self._steps.follow(move)
        agent = move.agent_kind if move.agent else self._kind if self._place.part else MAIN
        if move.kind == "usage":
            self._usage(move, agent)
        elif move.kind == "call":
            tool, server = server_of(move.text or UNKNOWN)
            self._gather.call(self._steps.call_key(move), move.time_ns, tool, server=server, agent=agent)
        elif move.kind == "result":
            size = len(move.text.encode("utf-8", "replace"))
            key = self._steps.result_key(move)
            self._gather.result(key, move.time_ns, failed=move.failed, output_bytes=size)
        elif not move.agent:
            self._turn(move)

    def _turn(self, move: Move) -> None:
        if move.kind == "prompt":
            self._gather.turn(move.text, move.time_ns)
            self._gather.status = None
        elif move.kind == "step":
            self._gather.status = None
        elif move.kind == "done":
            self._gather.status = "success"
        elif move.kind == "cancelled":
            self._gather.status = "cancelled"
        elif move.kind == "profile" and self._place.part:
            self._kind = move.text

    def _usage(self, move: Move, agent: str) -> None:
        assert move.usage is not None
        self.findings.complain(self._path, self._rows.line, *move.issues)
        response = self._steps.response(move, self._rows.start)
        self._gather.add(
            Record(
                time_ns=response.time_ns, provider=response.provider, model=response.model, response_model=None,
                usage=move.usage, cost_nano=None, latency_ms=response.latency_ms, key=response.key,
                quality="exact" if move.usage else "partial",
                standing=Standing.ECHO if move.agent else Standing.REAL, agent=agent,
            )
        )  # fmt: skip

    def finish(self, resume: Resume) -> LogScan:
        session = self._gather.session(part=self._place.part)
        return LogScan(sessions=(session,), problems=self.findings.problems, resume=resume)


def _scan(path: str, resume: Resume | None = None) -> LogScan:
    offset, line = (resume.offset, resume.line) if resume else (0, 0)
    with Rows(path, offset=offset, line=line) as rows:
        scan = _Scan(path, rows, resume.state if resume else {})
        for row in rows.read(matters):
            scan.take(row)
        going_on = Resume(offset=rows.offset, line=rows.line, state=scan.state())
        for row in rows.last(matters):
            scan.take(row)
    return scan.finish(going_on)


def _read(path: str, session_id: str | None = None) -> Iterator[Event | Problem]:
    place = place_of(path)
    if session_id in {None, place.session_id, place.name}:
        yield from read_events(path)


def _name_sessions(path: str) -> Iterable[str]:
    return (place_of(path).name,)


SOURCE = Source(
    id=_ID, title="Kimi", parser=1, locate=_locate, list_logs=_list_logs, recognises=_recognises, scan=_scan,
    read=_read, name_sessions=_name_sessions, beside=files_beside,
)  # fmt: skip
