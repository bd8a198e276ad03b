"""One Codex rollout, written row by row as the CLI writes it; it tells the truth of each response it makes up.

A rollout never says what a response used without saying what the thread has used so far; how often it says so, and in
which order, means nothing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from benchmarks.agent_homes import Texts, Truth, stamp, uuid7

MODELS = ("gpt-5.3-codex", "gpt-5.3-codex", "gpt-5.2-codex", "gpt-5.1-codex-mini", "gpt-5.4")
CONTEXT_LIMIT = 220_000
"""Tokens after which the CLI summarises its history."""
LONGEST_OUTPUT = 60_000
"""Characters of a tool's output that the CLI keeps."""

Vector = tuple[int, int, int, int]
"""Input (cached tokens included), cached input, output (reasoning included), reasoning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One response in a rollout: the rows up to and with its counts, what it used, and the counter after it."""

    end: int
    stale: bool
    tokens: dict[str, int]
    total: Vector
    info: str


class Rollout:
    """One thread's file; the rows are kept apart from their times, since forks stamp them again.

    Attributes:
        id: The thread.
        rows: Time, row type and payload of each row so far.
        marks: Its own responses.
        total: The counter.
        info: The last count as written.
        fresh_agent: A sub-agent that inherits nothing.
        size: Characters so far.
        ms: The thread's clock.
    """

    def __init__(self, rng: random.Random, texts: Texts, truth: Truth, *, cwd: str, model: str, ms: int) -> None:
        self.rng, self.texts, self.truth = rng, texts, truth
        self.cwd, self.model, self.ms = cwd, model, ms
        self.id = uuid7(rng, ms)
        self.rows: list[tuple[int, str, str]] = []
        self.marks: list[Mark] = []
        self.total: Vector = (0, 0, 0, 0)
        self.size = 0
        self.info = ""
        self.fresh_agent = False
        self._before = ""
        self._last = 0
        self._context = rng.randrange(9000, 14_000)
        self._used_percent = rng.randrange(40)

    def put(self, type_: str, payload: str) -> None:
        """Append a row."""
        self.rows.append((self.ms, type_, payload))
        self.size += len(payload) + 70

    def wait(self, least: float, most: float) -> None:
        """Let seconds pass."""
        self.ms += int(self.rng.uniform(least, most) * 1000)

    def lines(self) -> list[str]:
        """The file."""
        return [
            f'{{"timestamp":"{stamp(ms)}","type":"{type_}","payload":{payload}}}\n' for ms, type_, payload in self.rows
        ]

    def meta(self, *, source: str = '"cli"', forked_from: str = "") -> None:
        """The thread's session_meta."""
        fork = f',"forked_from_id":"{forked_from}"' if forked_from else ""
        self.put(
            "session_meta",
            f'{{"id":"{self.id}"{fork},"timestamp":"{stamp(self.ms)}","cwd":"{self.cwd}","originator":"codex_cli_rs",'
            f'"cli_version":"0.98.0","source":{source},"model_provider":"openai","base_instructions":{{"text":'
            f'"{self.texts.pick(6000)}"}},"git":{{"commit_hash":"{self.rng.getrandbits(160):040x}","branch":"main"}}}}',
        )

    def count(self, info: str) -> None:
        """A token_count row: the counter (or null), and the rate limits of the moment."""
        self._used_percent = min(100, self._used_percent + self.rng.choice((0, 0, 1)))
        window = f'"window_minutes":300,"resets_at":{self.ms // 1000 + 9000}'
        week = f'"window_minutes":10080,"resets_at":{self.ms // 1000 + 400_000}'
        limits = (
            f'{{"limit_id":"codex","limit_name":null,"primary":{{"used_percent":{self._used_percent}.0,{window}}},'
            f'"secondary":{{"used_percent":{self._used_percent // 4}.0,{week}}},"credits":null,"plan_type":"pro"}}'
        )
        self.put("event_msg", f'{{"type":"token_count","info":{info},"rate_limits":{limits}}}')

    def turn(self, steps: int, *, repeat_inherited: bool = False) -> None:
        """A prompt, and responses until one calls nothing."""
        rng, texts = self.rng, self.texts
        turn_id = uuid7(rng, self.ms)
        self.put(
            "event_msg",
            f'{{"type":"task_started","turn_id":"{turn_id}","started_at":{self.ms // 1000},'
            '"model_context_window":272000,"collaboration_mode_kind":"default"}',
        )
        if rng.random() < 0.05:
            self.model = rng.choice(MODELS)
        self.put(
            "turn_context",
            f'{{"turn_id":"{turn_id}","cwd":"{self.cwd}","approval_policy":"on-request","sandbox_policy":{{"type":'
            f'"workspace-write","network_access":false}},"model":"{self.model}","effort":"high","summary":"auto"}}',
        )
        prompt = texts.skewed(200, 0.8)
        self.put("response_item", _message("user", "input_text", prompt))
        self.put("event_msg", f'{{"type":"user_message","message":"{prompt}","images":[],"local_images":[]}}')
        if repeat_inherited:
            self.count(self.info)
        if rng.random() < 0.2:
            self.count("null")
        if rng.random() < 0.015:
            self._fail(turn_id)
            return
        for _ in range(steps):
            self._respond(calls=True)
        if rng.random() < 0.02:
            self.put("event_msg", f'{{"type":"turn_aborted","turn_id":"{turn_id}","reason":"interrupted"}}')
            return
        self._respond(calls=False)
        took = rng.randrange(4000, 600_000)
        self.put("event_msg", f'{{"type":"task_complete","turn_id":"{turn_id}","duration_ms":{took}}}')

    def _fail(self, turn_id: str) -> None:
        for attempt in range(1, self.rng.randrange(2, 6)):
            self.wait(1, 9)
            self.put("event_msg", f'{{"type":"stream_error","message":"Reconnecting... {attempt}/5"}}')
            self.truth.kinds["stream_error rows"] += 1
        self.put("event_msg", '{"type":"error","message":"stream disconnected","codex_error_info":"server_overloaded"}')
        self.put("event_msg", f'{{"type":"task_complete","turn_id":"{turn_id}","last_agent_message":null}}')
        self.truth.request({"requests": 1, "failed_requests": 1}, model=self.model, session=self.id, ms=self.ms)

    def _respond(self, *, calls: bool) -> None:
        """One response: reasoning, words, calls; then the counter; then what the calls gave."""
        rng, texts, length, ids = self.rng, self.texts, 0, []
        self.wait(1, 12)
        thought = 0
        if rng.random() < 0.7:
            sealed = texts.sealed(rng.randrange(400, 2600))
            thought = len(sealed) // 8
            said = texts.skewed(120, 0.6)
            self.put("event_msg", f'{{"type":"agent_reasoning","text":"{said}"}}')
            item = (
                f'"summary":[{{"type":"summary_text","text":"{said}"}}],"content":null,"encrypted_content":"{sealed}"'
            )
            self.put("response_item", f'{{"type":"reasoning",{item}}}')
        if not calls or rng.random() < 0.25:
            said = texts.skewed(150 if calls else 700, 0.7)
            length += len(said)
            self.put("event_msg", f'{{"type":"agent_message","message":"{said}","phase":"commentary"}}')
            self.put("response_item", _message("assistant", "output_text", said))
        for _ in range(rng.choice((1, 1, 1, 2)) if calls else 0):
            ids.append(f"call_{rng.getrandbits(96):024x}")
            given = texts.skewed(150, 0.9)
            length += len(given)
            self.put("response_item", _call(ids[-1], given))
        self._counted(thought, length)
        for call_id in ids:
            self._give_back(call_id)
        if self._context > CONTEXT_LIMIT:
            self._compact()

    def _give_back(self, call_id: str) -> None:
        rng = self.rng
        self.wait(0.1, 9)
        text = self.texts.skewed(1000, 1.5)[:LONGEST_OUTPUT].rstrip("\\")
        self._context += len(text) // 4 + 20
        kind = "custom_tool_call_output" if rng.random() < 0.1 else "function_call_output"
        self.put("response_item", f'{{"type":"{kind}","call_id":"{call_id}","output":"{text}"}}')
        if rng.random() < 0.06:
            end = f'"call_id":"{call_id}","stdout":"{self.texts.pick(60)}","stderr":"","success":true'
            self.put("event_msg", f'{{"type":"patch_apply_end",{end}}}')

    def _counted(self, thought: int, length: int) -> None:
        """Tell the truth about one response, and then have it counted: once or more often, now and then out of order."""
        rng, truth = self.rng, self.truth
        cached = 0 if rng.random() < 0.08 else int(self._context * rng.uniform(0.8, 0.99)) // 128 * 128
        last: Vector = (self._context, cached, thought + length // 4 + rng.randrange(15, 60), thought)
        tokens = {
            "requests": 1, "input_tokens": last[0] - cached, "cache_read_tokens": cached, "output_tokens": last[2],
            "reasoning_tokens": thought,
        }  # fmt: skip
        self._context += last[2]
        self.wait(0.1, 2)
        truth.request(tokens, model=self.model, session=self.id, ms=self.ms)
        self.total = tuple(a + b for a, b in zip(self.total, last, strict=True))
        self._before, self.info = self.info, _info(self.total, last)
        self.count(self.info)
        if rng.random() < 0.16:
            counted_ms = self.ms
            self.wait(0.2, 4)
            self.count(self.info)
            truth.trap("repeated count", tokens)
            if self.fresh_agent and not self.marks and self.ms - counted_ms <= 1000:
                truth.trap(
                    "fresh sub-agent's first count repeated within a second", {name: -n for name, n in tokens.items()}
                )
        stale = bool(self._before and self.marks and last[0] < 1.8 * self._last and rng.random() < 0.002)
        if stale:
            self.wait(0.01, 0.2)
            self.count(self._before)
            truth.trap("stale count", self.marks[-1].tokens)
        self._last = last[0]
        self.marks.append(Mark(end=len(self.rows), stale=stale, tokens=tokens, total=self.total, info=self.info))

    def _compact(self) -> None:
        """Summarise the history; now and then the counter begins anew, with the next response as its first."""
        self.put("compacted", f'{{"message":"{self.texts.skewed(4000, 0.3)}","replacement_history":[]}}')
        self.put("event_msg", '{"type":"context_compacted"}')
        self._context = 16_000
        if self.total[0] > 1_000_000 and self.rng.random() < 0.6:
            self.total, self.info, self._before = (0, 0, 0, 0), "", ""
            self.truth.kinds["counter resets"] += 1

    def restart(self) -> None:
        """Resume in a new process whose counter begins anew."""
        self._context = 15_000
        if self.total[0] > 1_000_000:
            self.total, self.info, self._before = (0, 0, 0, 0), "", ""
            self.truth.kinds["counter resets"] += 1


def _message(role: str, kind: str, text: str) -> str:
    return f'{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}'


def _call(call_id: str, given: str) -> str:
    arguments = f'{{\\"command\\":\\"{given.replace(chr(92), chr(92) * 2).replace(chr(34), chr(92) + chr(34))}\\"}}'
    return f'{{"type":"function_call","name":"exec_command","arguments":"{arguments}","call_id":"{call_id}"}}'


def _vector(v: Vector) -> str:
    return (
        f'{{"input_tokens":{v[0]},"cached_input_tokens":{v[1]},"output_tokens":{v[2]},"reasoning_output_tokens":{v[3]},'
        f'"total_tokens":{v[0] + v[2]}}}'
    )


def _info(total: Vector, last: Vector) -> str:
    counts = f'"total_token_usage":{_vector(total)},"last_token_usage":{_vector(last)}'
    return f'{{{counts},"model_context_window":272000}}'
