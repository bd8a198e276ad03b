"""One Claude Code transcript, written row by row as the CLI writes it; it tells the truth of each response it makes up.

A response becomes one row per content block; only the last row knows its output.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.agent_homes import Texts, Truth, stamp, uuid4

OPUS, SONNET, HAIKU = "claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"
TOOLS = ("Bash", "Bash", "Bash", "Bash", "Read", "Read", "Read", "Edit", "Grep", "mcp__tracker__find")
CONTEXT_LIMIT = 155_000
"""Tokens after which the CLI summarises its history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A CLI version: its name, whether it echoes sub-agents, and whether it writes the longer usage objects."""

    name: str
    echoes: bool
    late: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who serves a session: the model's spelling, whether rows bear a request id, and how cache writes are split."""

    prefix: str = ""
    request_ids: bool = True
    split: str = "1h"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One response in a transcript: its rows (half-open), what it used, and its model and time."""

    first: int
    end: int
    tokens: dict[str, int]


class Transcript:
    """One file of one session, written row by row; it tells the truth of each response when it makes it up.

    Attributes:
        rows: The file so far.
        marks: Its own responses.
        echoes: A sub-agent's progress rows for its parent: time, agent's message; None if the version has none.
        size: Characters so far.
        ms: The session's clock.
    """

    def __init__(
        self, rng: random.Random, texts: Texts, truth: Truth, *, session: str, cwd: str, version: Version,
        account: Account, model: str, ms: int, agent: str = "",
    ) -> None:  # fmt: skip
        self.rng, self.texts, self.truth = rng, texts, truth
        self.session, self.cwd, self.version, self.account, self.agent = session, cwd, version, account, agent
        self.model, self.ms = model, ms
        self.branch = rng.choice(("main", "main", "fix/torn-tail", "feature/λ"))
        self.rows: list[str] = []
        self.marks: list[Mark] = []
        self.echoes: list[tuple[int, str]] | None = None
        self.lost = False
        self.size = 0
        self._parent = "null"
        self._context = rng.randrange(3500, 9000) if agent else rng.randrange(14_000, 24_000)
        self._cached = 0 if rng.random() < 0.3 else min(self._context, 13_000)

    def add(self, body: str, tail: str = "") -> str:
        """Append a row of the conversation and return its uuid."""
        uuid = uuid4(self.rng)
        agent = f',"agentId":"{self.agent}"' if self.agent else ""
        self.put(
            f'{{"parentUuid":{self._parent},"isSidechain":{"true" if self.agent else "false"},"userType":"external",'
            f'"cwd":"{self.cwd}","sessionId":"{self.session}","version":"{self.version.name}",'
            f'"gitBranch":"{self.branch}"{agent},{body},"uuid":"{uuid}","timestamp":"{stamp(self.ms)}"{tail}}}\n'
        )
        self._parent = f'"{uuid}"'
        return uuid

    def put(self, row: str) -> None:
        """Append a row as it is."""
        self.rows.append(row)
        self.size += len(row)

    def wait(self, least: float, most: float) -> None:
        """Let seconds pass."""
        self.ms += int(self.rng.uniform(least, most) * 1000)

    def prompt(self, length: float) -> None:
        """The user (or the parent agent) says something."""
        if not self.agent and self.rng.random() < 0.4:
            files = f'{{"src/app.py":{{"backupFileName":"{self.rng.getrandbits(64):016x}@v2","version":2}}}}'
            snapshot = (
                f'{{"messageId":"{uuid4(self.rng)}","trackedFileBackups":{files},"timestamp":"{stamp(self.ms)}"}}'
            )
            self.put(
                f'{{"type":"file-history-snapshot","messageId":"{uuid4(self.rng)}","snapshot":{snapshot},'
                '"isSnapshotUpdate":false}\n'
            )
        self.add(f'"type":"user","message":{{"role":"user","content":"{self.texts.skewed(length, 0.8)}"}}')

    def request(self, tools: Sequence[str], *, cut: bool = False) -> list[str]:
        """One response: thinking, text, tool calls; returns the ids of the calls.

        Args:
            tools: Names of the tools to call.
            cut: The user interrupts it: the row with the final counts never comes.
        """
        rng, began = self.rng, len(self.rows)
        blocks, ids, length = self._blocks(tools)
        used = self._usage(length)
        placeholder = rng.randrange(1, 10)
        final = used["output_tokens"]
        if cut:
            blocks, used["output_tokens"] = blocks[: max(1, len(blocks) - 1)], placeholder
        identity = f'"model":"{self.account.prefix}{self.model}","id":"msg_01{rng.getrandbits(88):022x}"'
        request_id = f'"requestId":"req_011C{rng.getrandbits(80):020x}",' if self.account.request_ids else ""
        stop = '"tool_use"' if tools else '"end_turn"'
        self.wait(0.7, 4)
        began_ms = self.ms
        echo = self._echo_kind()
        for number, block in enumerate(blocks):
            ends = number == len(blocks) - 1 and not cut
            message = self._message(identity, block, used, final if ends else placeholder, stop if ends else "null")
            if echo == "all" or (echo == "stale" and number == 0):
                shown = self._message(identity, block, used, placeholder, "null") if echo == "stale" else message
                self._echo(shown, request_id)
            if not self.lost:
                self.add(f'"message":{message},{request_id}"type":"assistant"')
            self.ms += rng.randrange(200, 400 + len(block))
        self._count(used, placeholder, echo=echo, cut=cut, began_ms=began_ms, began=began)
        if not request_id and (echo == "all" if self.agent else True):
            again = {name: n * (len(blocks) - 1) for name, n in used.items()}
            again["output_tokens"] = placeholder * (len(blocks) - 1)
            self.truth.trap("rows without request id", again)
        self._context += used["output_tokens"]
        return ids

    def _blocks(self, tools: Sequence[str]) -> tuple[list[str], list[str], int]:
        rng, texts = self.rng, self.texts
        blocks, ids = [], []
        if rng.random() < 0.45:
            signature = texts.sealed(rng.randrange(300, 1400))
            blocks.append(f'{{"type":"thinking","thinking":"{texts.skewed(300, 0.9)}","signature":"{signature}"}}')
        if rng.random() < 0.55 or not tools:
            blocks.append(f'{{"type":"text","text":"{texts.skewed(150 if tools else 700, 0.8)}"}}')
        for name in tools:
            ids.append(f"toolu_01{rng.getrandbits(88):022x}")
            if name == "Edit":
                old, new = texts.skewed(300, 1), texts.skewed(400, 1)
                given = f'"file_path":"{self.cwd}/src/app.py","old_string":"{old}","new_string":"{new}"'
            elif name == "Task":
                given = f'"description":"Look around","prompt":"{texts.skewed(900, 0.5)}","subagent_type":"Explore"'
            else:
                given = f'"command":"{texts.skewed(90, 0.7)}","description":"{texts.pick(40)}"'
            blocks.append(f'{{"type":"tool_use","id":"{ids[-1]}","name":"{name}","input":{{{given}}}}}')
        return blocks, ids, sum(map(len, blocks))

    def _usage(self, length: int) -> dict[str, int]:
        fresh = self.rng.randrange(3, 12) if self._context > 4096 or not self.agent else self._context
        read = min(self._cached, self._context - fresh)
        written = self._context - fresh - read
        self._cached = read + written
        hour = {"1h": written, "both": written * 2 // 3}.get("5m" if self.agent else self.account.split, 0)
        if self.account.split in {"none", "zeros"}:
            hour = 0
        return {
            "requests": 1, "input_tokens": fresh, "output_tokens": 12 + length // 4 + self.rng.randrange(40),
            "cache_read_tokens": read, "cache_write_tokens": written, "cache_write_1h_tokens": hour,
        }  # fmt: skip

    def _message(self, identity: str, block: str, used: dict[str, int], output: int, stop: str) -> str:
        written, hour = used["cache_write_tokens"], used["cache_write_1h_tokens"]
        five = 0 if self.account.split == "zeros" else written - hour
        split = f'"cache_creation":{{"ephemeral_5m_input_tokens":{five},"ephemeral_1h_input_tokens":{hour}}},'
        if self.account.split == "none":
            split = ""
        usage = (
            f'"input_tokens":{used["input_tokens"]},"cache_creation_input_tokens":{written},'
            f'"cache_read_input_tokens":{used["cache_read_tokens"]},'
        )
        if self.version.late:
            tools = '"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0}'
            usage += f'"output_tokens":{output},{tools},"service_tier":"standard",{split}'
            usage += '"inference_geo":"","iterations":[],"speed":"standard"'
        else:
            usage += f'{split}"output_tokens":{output},"service_tier":"standard"'
        return (
            f'{{{identity},"type":"message","role":"assistant","content":[{block}],"stop_reason":{stop},'
            f'"stop_sequence":null,"usage":{{{usage}}}}}'
        )

    def _echo_kind(self) -> str:
        if self.echoes is None:
            return ""
        return self.rng.choices(("", "all", "stale"), (450, 546, 4))[0]

    def _echo(self, message: str, request_id: str) -> None:
        assert self.echoes is not None
        inner = (
            f'{{"type":"assistant","timestamp":"{stamp(self.ms)}","message":{message},{request_id}'
            f'"uuid":"{uuid4(self.rng)}"}}'
        )
        self.echoes.append((self.ms + 40, inner))

    def _count(
        self, used: dict[str, int], placeholder: int, *, echo: str, cut: bool, began_ms: int, began: int
    ) -> None:
        """Tell the truth about one response: what any row of it still knows."""
        truth, model = self.truth, self.account.prefix + self.model
        if self.lost and not echo:
            truth.kinds["responses without a trace"] += 1
            return
        missing = {"output_tokens": placeholder - used["output_tokens"]}
        if self.lost and echo == "stale":
            used = used | {"output_tokens": placeholder}
        truth.request(used, model=model, session=self.session, ms=began_ms)
        if self.lost:
            truth.trap("only in progress rows", {name: -n for name, n in used.items()})
            return
        truth.kinds["interrupted responses"] += cut
        if echo == "stale":
            truth.trap("stale progress row", missing)
        if self.account.split == "zeros":
            truth.trap("split of zeros", {"cache_write_tokens": -used["cache_write_tokens"]})
        if len(self.rows) - began > 1:
            truth.trap("first row of several", missing)
            if stamp(began_ms)[:10] != stamp(self.ms)[:10]:
                truth.trap("across midnight", used)
        self.marks.append(Mark(first=began, end=len(self.rows), tokens=used))

    def answer(self, tool_id: str, name: str) -> None:
        """A tool's result: what the model sees, and the CLI's own record beside it."""
        rng = self.rng
        self.wait(0.05, 6)
        text = self.texts.skewed(430, 1.75)
        self._context += len(text) // 4 + 30
        failed = rng.random() < 0.05
        if failed:
            result = f'"Error: {text}"'
        elif name == "Read":
            result = (
                f'{{"type":"text","file":{{"filePath":"{self.cwd}/src/app.py","content":"{text}",'
                '"numLines":40,"startLine":1,"totalLines":812}}'
            )
        elif name == "Edit":
            lines = f'{{"oldStart":7,"oldLines":6,"newStart":7,"newLines":9,"lines":["{text}"]}}'
            result = f'{{"filePath":"{self.cwd}/src/app.py","structuredPatch":[{lines}],"userModified":false}}'
        else:
            result = f'{{"stdout":"{text}","stderr":"","interrupted":false,"isImage":false}}'
        self._result(tool_id, text, result, ',"is_error":true' if failed else "")

    def _result(self, tool_id: str, text: str, result: str, error: str = "") -> None:
        content = f'[{{"tool_use_id":"{tool_id}","type":"tool_result","content":"{text}"{error}}}]'
        self.add(f'"type":"user","message":{{"role":"user","content":{content}}}', f',"toolUseResult":{result}')

    def answer_task(self, tool_id: str, child: Transcript) -> None:
        """A sub-agent's result, with the echoes of its work before it and its totals beside it."""
        began, self.ms = self.ms, child.ms
        for ms, inner in child.echoes or ():
            data = f'{{"type":"agent_progress","message":{inner},"prompt":"Look around","agentId":"{child.agent}"}}'
            after, self.ms = self.ms, ms
            self.add(f'"type":"progress","data":{data},"toolUseID":"agent_{ms}","parentToolUseID":"{tool_id}"')
            self.ms = after
        last = child.marks[-1].tokens if child.marks else {}
        text = self.texts.skewed(900, 0.6)
        self._context += len(text) // 4
        totals = (
            f'{{"status":"completed","agentId":"{child.agent}","content":[{{"type":"text","text":"{text}"}}],'
            f'"totalDurationMs":{child.ms - began},"totalTokens":{child._context},"totalToolUseCount":{len(child.marks)},'
            f'"usage":{{"input_tokens":{last.get("input_tokens", 3)},"cache_creation_input_tokens":0,'
            f'"cache_read_input_tokens":{last.get("cache_read_tokens", 0)},"output_tokens":'
            f'{last.get("output_tokens", 5)},"service_tier":"standard"}}}}'
        )
        self._result(tool_id, text, totals)

    def fail(self) -> None:
        """The API does not answer: retries, then a notice that the CLI words as the model's."""
        for attempt in range(1, self.rng.randrange(2, 5)):
            self.wait(1, 20)
            error = f'{{"status":529,"requestID":"req_011C{self.rng.getrandbits(80):020x}"}}'
            self.add(
                f'"type":"system","subtype":"api_error","level":"error","error":{error},"retryInMs":{attempt * 900},'
                f'"retryAttempt":{attempt},"maxRetries":10'
            )
            self.truth.kinds["api_error rows"] += 1
        usage = '{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}'
        self.add(
            f'"message":{{"id":"{uuid4(self.rng)}","model":"<synthetic>","role":"assistant","stop_reason":'
            f'"stop_sequence","stop_sequence":"","type":"message","usage":{usage},"content":[{{"type":"text",'
            '"text":"API Error: 529 overloaded_error"}]},"type":"assistant","isApiErrorMessage":true'
        )
        self.truth.request({"requests": 1, "failed_requests": 1}, model="unknown", session=self.session, ms=self.ms)

    def compact(self) -> None:
        """Summarise the history when it has become too long."""
        if self._context < CONTEXT_LIMIT:
            return
        data = f'{{"trigger":"auto","preTokens":{self._context}}}'
        self.add(f'"type":"system","subtype":"compact_boundary","level":"info","compactMetadata":{data}')
        summary = self.texts.skewed(5000, 0.3)
        self.add(f'"type":"user","message":{{"role":"user","content":"{summary}"}}', ',"isCompactSummary":true')
        self._context, self._cached = 26_000, 13_000

    def pause(self) -> None:
        """The user thinks, or sleeps over it; caches expire."""
        self.wait(5, 240)
        if self.rng.random() < 0.1:
            self.wait(600, 14_000)
            self._cached = self.rng.choice((0, 13_000))

    def turn(self, steps: int) -> None:
        """Requests with tools until one needs none."""
        rng = self.rng
        for _ in range(steps):
            names = rng.choices(TOOLS, k=rng.choice((1, 1, 1, 1, 2, 3)))
            for tool_id, name in zip(self.request(names), names, strict=True):
                self.answer(tool_id, name)
            self.compact()
        self.request(())
