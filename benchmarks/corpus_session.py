"""One session of the corpus: a log written line by line, and what it used, summed at the same time."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

FIRST_NS = int(datetime(2026, 9, 1, tzinfo=UTC).timestamp()) * 1_000_000_000
SPREAD_DAYS = 60
KEPT_MESSAGES = 240_000
"""Bytes of messages after which an agent summarises its history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model of the corpus.

    Attributes:
        provider: As logged.
        name: As logged.
        share: How often it is chosen.
        recorded: Whether responses name their cost.
        nano: Nano-dollars per token of input, output, cache_read, cache_write; None when nobody knows.
    """

    provider: str
    name: str
    share: int
    recorded: bool
    nano: tuple[int, int, int, int] | None


MODELS = (
    Model(provider="anthropic", name="claude-opus-4-5", share=5, recorded=True, nano=(5000, 25_000, 500, 6250)),
    Model(provider="anthropic", name="claude-sonnet-4-5", share=4, recorded=True, nano=(3000, 15_000, 300, 3750)),
    Model(provider="openai", name="gpt-5.3-codex", share=3, recorded=False, nano=(2000, 16_000, 200, 2000)),
    Model(provider="vllm", name="qwen3.6-27b", share=2, recorded=False, nano=None),
)

CLASSES = ("input", "output", "cache_read", "cache_write", "reasoning")


class Style:
    """How one writer spells JSON."""

    def __init__(self, rng: random.Random) -> None:
        self.spaced = rng.random() < 0.02
        self.type_last = rng.random() < 0.01
        self.go = rng.random() < 0.5

    def dumps(self, value: Any) -> bytes:
        """Encode one value as this writer does."""
        if self.spaced:
            return json.dumps(value).encode()
        text = orjson.dumps(value)
        if self.go:  # encoding/json escapes what HTML reads as its own
            text = text.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")
        return text

    def line(self, session_id: str, seq: int, type_: str, ts: str, data: bytes) -> bytes:
        """One event around an encoded payload."""
        head = {"session_id": session_id, "seq": seq, "type": type_, "ts": ts}
        if self.type_last:
            head["type"] = head.pop("type")
        colon, comma = (b": ", b", ") if self.spaced else (b":", b",")
        fields = [self.dumps(key) + colon + self.dumps(value) for key, value in head.items()]
        fields.insert(4 - self.type_last, b'"data"' + colon + data)
        return b"{" + comma.join(fields) + b"}\n"


class Session:
    """Writes one log and keeps its truth.

    Attributes:
        lines: Event type and bytes of each line.
        rows: (provider, model) → column → sum.
        status: What session.end says, None without one.
        unlogged: The totals of session.end say more than the responses.
        size: Bytes so far.
        now_ns: The session's clock.
    """

    def __init__(self, rng: random.Random, texts: list[str], target: int, number: int) -> None:
        self._rng = rng
        self._texts = texts
        self._target = target
        self._style = Style(rng)
        self._id = f"s-{number:06d}-{rng.getrandbits(32):08x}"
        self._scale = min(1.0, target / 120_000)
        self.now_ns = FIRST_NS + rng.randrange(SPREAD_DAYS * 86_400) * 1_000_000_000
        self.lines: list[tuple[str, bytes]] = []
        self.size = 0
        self.rows: dict[tuple[str, str], Counter[str]] = {}
        self.status: str | None = None
        self.unlogged = False
        self._totals: Counter[str] = Counter()
        self._known = 0
        self._messages: list[bytes] = []
        self._models = rng.choices(MODELS, weights=[m.share for m in MODELS], k=2)
        self.two_models = rng.random() < 0.08
        if not self.two_models:
            self._models[1] = self._models[0]
        self._all_known = all(model.recorded for model in self._models)
        self._native = rng.random() < 0.67
        self._turn = 0

    @property
    def name(self) -> str:
        """The file's name without a suffix."""
        return self._id

    @property
    def spaced(self) -> bool:
        """Whether the writer puts spaces after separators."""
        return self._style.spaced

    @property
    def native(self) -> bool:
        """Whether token classes are disjoint as logged."""
        return self._native

    @property
    def counts(self) -> bool:
        """Whether reports count it: a log of ours without a request to a model is only listed."""
        is_asked = any(type_ in {"llm.request", "llm.response"} for type_, _ in self.lines)
        return is_asked or self.unlogged or not self._native

    def write(self) -> None:
        """Run the session until its log has the size wanted, and end or crash."""
        model = self._models[0]
        self._row(model)
        prompt = self._text(400)
        start: dict[str, Any] = {
            "provider": model.provider,
            "model": model.name,
            "work_dir": f"/home/dev/src/project{self._rng.randrange(12)}",
            "prompt": prompt,
            "system_prompt": self._text(2000),
            "metadata": {"team": self._rng.choice(["api", "site", "data"])},
        }
        self._event("session.start", {"v": 1, **start} if self._native else start)
        self._say("system", self._text(int(9000 * self._scale)))
        self._say("user", prompt)
        crashes = self._rng.random() < 0.035
        while self.size < self._target:
            self._take_turn(self._models[self._turn > 0 and self._rng.random() < 0.5])
        if crashes:
            self._crash()
        else:
            self._end()

    def _take_turn(self, model: Model) -> None:
        self._turn += 1
        if sum(map(len, self._messages)) > KEPT_MESSAGES:
            self._compact()
        self._request(model)
        for _ in range(self._rng.randrange(12, 30)):
            self._wait(0.01, 0.6)
            self._event(*self._small_event(model))
        latency = self._wait(0.8, 25)
        answer = self._text(int(self._rng.choice((200, 600, 1800)) * self._scale) + 20)
        self._response(model, latency, answer)
        self._say("assistant", answer)
        for _ in range(self._rng.randrange(1, 10)):
            self._tool()

    def _request(self, model: Model) -> None:
        style = self._style
        colon, comma = (b": ", b", ") if style.spaced else (b":", b",")
        data = (
            b'{"messages"' + colon + b"[" + comma.join(self._messages) + b"]" + comma
            + b'"model"' + colon + style.dumps(model.name) + comma + b'"temperature"' + colon + b"0.2}"
        )  # fmt: skip
        self._event("llm.request", data)

    def _small_event(self, model: Model) -> tuple[str, Any]:
        if self._rng.random() < 0.55:
            return "llm.delta", {"content": self._text(self._rng.randrange(4, 90)), "model": model.name}
        spent = {"phase": "generate", "state": "running", "turn_index": self._turn, "tok_per_sec": 61.5}
        return "progress", {**spent, "message": self._text(self._rng.randrange(10, 60))}

    def _response(self, model: Model, latency: float, answer: str) -> None:
        row = self._row(model)
        row["requests"] += 1
        data: dict[str, Any] = {"latency_ms": latency, "attempt": {"provider_system": model.provider}}
        if self._rng.random() < 0.02:
            row["failed_requests"] += 1
            self._event("llm.response", {"error": "429 rate limited, try again later", **data})
            return
        if model.nano is None:  # a failed call that used nothing has nothing to price
            row["unpriced_requests"] += 1
        used = self._usage(sum(map(len, self._messages)))
        cost = self._spend(model, used)
        if model.recorded:
            data["cost_usd"] = cost / 1_000_000_000
        calls = [{"id": f"call_{self._turn}", "name": "bash", "arguments": {"command": self._text(80)}}]
        usage = self._as_logged(used, model)
        self._event(
            "llm.response",
            {"content": answer, "tool_calls": calls, "usage": usage, "model": model.name, "finish_reason": "stop"}
            | data,
        )

    def _spend(self, model: Model, used: dict[str, int]) -> int:
        """Enter tokens into the truth; returns what they cost in nano-dollars."""
        row = self._row(model)
        for name in CLASSES:
            row[f"{name}_tokens"] += used[name]
            self._totals[name] += used[name]
        cost = sum(used[name] * price for name, price in zip(CLASSES, model.nano or (0, 0, 0, 0), strict=False))
        row["known_nano" if model.recorded else "estimated_nano"] += cost
        self._known += cost if model.recorded else 0
        return cost

    def _usage(self, prompt_bytes: int) -> dict[str, int]:
        prompt = prompt_bytes // 4 + 200
        cached = int(prompt * self._rng.choice((0, 0, 0.6, 0.9, 0.97)))
        output = self._rng.randrange(30, 1500)
        return {
            "input": prompt - cached,
            "output": output,
            "cache_read": cached,
            "cache_write": self._rng.choice((0, prompt // 20)),
            "reasoning": output // 3 if self._rng.random() < 0.3 else 0,
        }

    def _as_logged(self, used: dict[str, int], model: Model) -> dict[str, int]:
        """The Go dialect's OpenAI-style providers count cached tokens in input as well, the Anthropic-style do not."""
        logged = {name: count for name, count in used.items() if count or name in {"input", "output"}}
        if not self._native and model.provider != "anthropic":
            logged["input"] += used["cache_read"]
        return {**logged, "total": sum(used[name] for name in CLASSES[:4])}

    def _tool(self) -> None:
        result = self._text(int(self._rng.choice((60, 200, 900, 1600)) * self._scale) + 20)
        took = self._wait(0.005, 3)
        self._event(
            "tool.call", {"tool": "read", "input": {"path": "src/app.py"}, "output": result, "duration_ms": took}
        )
        self._say("tool", result)

    def _compact(self) -> None:
        before = len(self._messages)
        self._event("compaction.start", {"messages_before": before})
        self._messages = [self._messages[0], *self._messages[-6:]]
        self._event(
            "compaction.end",
            {"messages_before": before, "messages_after": len(self._messages), "success": True},
        )

    def _crash(self) -> None:
        """Stop in the middle: the last lines never came, and the very last one may be torn."""
        kept = next((i for i, (type_, _) in enumerate(reversed(self.lines)) if type_ == "llm.response"), 0)
        del self.lines[len(self.lines) - self._rng.randrange(kept + 1) :]
        if self._rng.random() < 0.4:
            if self._rng.random() < 0.5:
                self._request(self._models[0])
            else:
                self._event(
                    "llm.response", {"usage": {"input": 123_456, "output": 654_321}, "content": self._text(400)}
                )
            type_, line = self.lines[-1]
            self.lines[-1] = (f"torn {type_}", line[: self._rng.randrange(30, len(line) - 2)])

    @property
    def torn(self) -> bool:
        """Whether the last line is unfinished."""
        return not self.lines[-1][1].endswith(b"\n")

    def _end(self) -> None:
        self.status = self._rng.choices(["success", "error", "cancelled", "iteration_limit"], [88, 6, 4, 2])[0]
        if self._native and self._all_known and not self.two_models and self._rng.random() < 0.05:
            self.unlogged = True  # calls that the agent made beside its turns: only the totals know them
            self._spend(self._models[0], self._usage(8000))
            self._row(self._models[0])["requests"] += self._turn == 0  # nothing but totals is one request
        both = {model.provider for model in self._models}
        tokens = self._totals
        if not self._native and both != {"anthropic"}:
            # An end knows no response's provider: a mixed session's totals would be read by the first one's rule.
            tokens = Counter() if len(both) > 1 else tokens + Counter(input=tokens["cache_read"])
        end: dict[str, Any] = {"status": self.status, "duration_ms": 1000 * self._turn, "output": self._text(300)}
        if tokens:
            end["tokens"] = dict(tokens)
        if self._all_known:
            end["cost_usd"] = self._known / 1_000_000_000
        self._wait(0.1, 2)
        self._event("session.end", end)

    def _row(self, model: Model) -> Counter[str]:
        """The truth about one model; a session that has used nothing belongs to the one it began with."""
        return self.rows.setdefault((model.provider, model.name), Counter())

    def _say(self, role: str, text: str) -> None:
        self._messages.append(self._style.dumps({"role": role, "content": text}))

    def _text(self, length: int) -> str:
        text = self._rng.choice(self._texts)
        while len(text) < length:
            text += self._rng.choice(self._texts)
        return text[:length]

    def _wait(self, least: float, most: float) -> float:
        """Let time pass; returns it in milliseconds."""
        waited = self._rng.uniform(least, most)
        self.now_ns += int(waited * 1_000_000_000)
        return round(waited * 1000, 3)

    def _event(self, type_: str, data: Any) -> None:
        micro, second = self.now_ns // 1000 % 1_000_000, self.now_ns // 1_000_000_000
        ts = f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{micro:06d}Z"
        encoded = data if isinstance(data, bytes) else self._style.dumps(data)
        line = self._style.line(self._id, len(self.lines), type_, ts, encoded)
        self.lines.append((type_, line))
        self.size += len(line)


def snippets(rng: random.Random) -> Iterator[str]:
    """Texts like those that agents carry about: code, prose, diffs, and now and then a whole session log."""
    words = ["the", "importer", "window", "cache", "reads", "écrit", "λ", "行", "token", "crash", "torn", "→", "fold"]
    names = ["load", "store", "parse_line", "session_id", "offset", "tail", "budget", "reader", "writer", "index"]
    for number in range(300):
        lines = []
        for _ in range(rng.randrange(6, 40)):
            a, b, c = rng.choice(names), rng.choice(names), " ".join(rng.choices(words, k=5))
            lines.append(
                rng.choice(
                    (
                        f'    if {a} < {b} and "{c}" not in {a}:\n\treturn f"{{{b}}} & {c}"',
                        f"def {a}({b}: dict[str, int]) -> None:\n    '''{c}'''",
                        f"- {c}\n+ {c.upper()}",
                        f"# {c}: {rng.random():.6f} \\ {a}/{b}.py",
                        f'<p class="{a}">{c}</p>',
                    )
                )
            )
        text = "\n".join(lines)
        if number % 50 == 0:
            quoted = {"session_id": "s-quoted", "seq": 7, "type": "llm.response", "ts": "2026-01-01T00:00:00Z"}
            text += "\n" + json.dumps(quoted | {"data": {"usage": {"input": 10**6, "output": 10**6}}}) + "\n"
        yield text
