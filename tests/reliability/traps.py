"""Traps: logs that are made to exhaust memory or time, and what each reading command takes of both for them.

    python -m tests.reliability.traps                    every command on every trap at its full size, as a table
    python -m tests.reliability.traps --only deep,bomb   some traps
    python -m tests.reliability.traps --commands usage,sessions --folder /var/tmp/traps

A trap's size is a factor: 1 is what PROMISES P9 speaks of, the tests take less. The bound holds for each process: its
greatest resident set, as the kernel counted it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from select import select
from typing import Any

BOUND_MB = 200
BOUND_SECONDS = 10.0

_DAY = "2026-11-20T"
_CLAUDE = "claude/projects/p/s.jsonl"
_CODEX = "codex/sessions/2026/11/20/rollout-2026-11-20T00-00-00-0199a213-81c0-7800-8aa1-bbab2a035a53.jsonl"
_WRITES = 20_000
_LAUNCHER = """
import os, resource, sys
figures, cap, *arguments = sys.argv[1:]
child = os.fork()
if not child:
    if int(cap):
        resource.setrlimit(resource.RLIMIT_AS, (int(cap), int(cap)))
    os.execv(sys.executable, [sys.executable, "-m", "sessionlog", *arguments])
_, status, usage = os.wait4(child, 0)
with open(figures, "w") as file:
    file.write(f"{os.waitstatus_to_exitcode(status)} {usage.ru_maxrss} {usage.ru_utime + usage.ru_stime}")
"""


def _stamp(number: int) -> str:
    """A time of day for the event of this number."""
    seconds = number // 10 % 86_400
    return f"{_DAY}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{number % 10}Z"


def _write(path: Path, lines: Iterator[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        while some := list(islice(lines, _WRITES)):  # itertools.batched is of 3.12
            file.write("\n".join(some) + "\n")


def _start(session: str) -> str:
    data = '{"v":1,"provider":"p","model":"m"}'
    return f'{{"session_id":"{session}","seq":0,"type":"session.start","ts":"{_stamp(0)}","data":{data}}}'


def _native_response(session: str, seq: int) -> str:
    data = '{"usage":{"input":10,"output":5},"latency_ms":7}'
    return f'{{"session_id":"{session}","seq":{seq},"type":"llm.response","ts":"{_stamp(seq)}","data":{data}}}'


def native_responses(folder: Path, count: int) -> None:
    """One log of many responses, 36 MB for 300,000."""
    lines = (_native_response("s", seq) for seq in range(1, count + 1))
    _write(folder / "native/s.jsonl", chain([_start("s")], lines))


def native_conversation(folder: Path, count: int) -> None:
    """One session of this many events: requests, responses and tool calls."""

    def lines() -> Iterator[str]:
        yield _start("s")
        for seq in range(1, count, 3):
            head = f'{{"session_id":"s","seq":{seq},"type":'
            request = f'{{"model":"m","messages":[{{"role":"user","content":"question {seq}"}}],"earlier_messages":9}}'
            call = f'{{"tool":"read","id":"c{seq}","input":{{"path":"a.py"}},"output":"{seq} lines","duration_ms":3}}'
            yield f'{head}"llm.request","ts":"{_stamp(seq)}","data":{request}}}'
            yield _native_response("s", seq + 1)
            yield f'{head}"tool.call","ts":"{_stamp(seq + 2)}","data":{call}}}'

    _write(folder / "native/s.jsonl", lines())


def native_files(folder: Path, count: int) -> None:
    """As many logs as sessions."""
    for number in range(count):
        place = folder / f"native/{number // 1000:03}"
        if number % 1000 == 0:
            place.mkdir(parents=True, exist_ok=True)
        name = f"s-{number:06}"
        (place / f"{name}.jsonl").write_text(f"{_start(name)}\n{_native_response(name, 1)}\n")


def _claude_row(kind: str, session: str, number: int, message: str) -> str:
    return (
        f'{{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/w","sessionId":"{session}",'
        f'"version":"2.1.0","gitBranch":"main","type":"{kind}","message":{message},"requestId":"req_{number}",'
        f'"uuid":"u-{kind}-{number}","timestamp":"{_stamp(number)}"}}'
    )


def _claude_turn(session: str, number: int) -> Iterator[str]:
    yield _claude_row("user", session, number, f'{{"role":"user","content":"question {number}"}}')
    usage = '{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":7}'
    yield _claude_row(
        "assistant", session, number,
        f'{{"id":"msg_{number}","type":"message","role":"assistant","model":"claude-sonnet-4-5",'
        f'"content":[{{"type":"text","text":"answer {number}"}}],"stop_reason":"end_turn","usage":{usage}}}',
    )  # fmt: skip


def claude_sessions(folder: Path, count: int) -> None:
    """One log with as many sessions as turns."""
    lines = (line for number in range(count) for line in _claude_turn(f"session-{number:06}", number))
    _write(folder / _CLAUDE, lines)


def claude_conversation(folder: Path, count: int) -> None:
    """One session of Claude Code of this many rows."""
    _write(folder / _CLAUDE, (line for number in range(count // 2) for line in _claude_turn("s", number)))


def codex_conversation(folder: Path, count: int) -> None:
    """One session of Codex of this many rows."""

    def row(number: int, kind: str, payload: str) -> str:
        return f'{{"timestamp":"{_stamp(number)}","type":"{kind}","payload":{payload}}}'

    def lines() -> Iterator[str]:
        session = "0199a213-81c0-7800-8aa1-bbab2a035a53"
        yield row(
            0, "session_meta", f'{{"id":"{session}","cwd":"/w","cli_version":"0.50.0","model_provider":"openai"}}'
        )
        yield row(0, "turn_context", '{"cwd":"/w","model":"gpt-5"}')
        for n in range(count // 3):
            user, said = f"question {n}", f"answer {n}"
            total = {"input_tokens": 10 * (n + 1), "output_tokens": 5 * (n + 1), "total_tokens": 15 * (n + 1)}
            last = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
            info = json.dumps({"total_token_usage": total, "last_token_usage": last})
            yield row(n, "event_msg", f'{{"type":"user_message","message":"{user}"}}')
            yield row(
                n, "response_item",
                f'{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{said}"}}]}}',
            )  # fmt: skip
            yield row(n, "event_msg", f'{{"type":"token_count","info":{info}}}')

    _write(folder / _CODEX, lines())


def _wrapped(content: Iterator[bytes], field: str = "x") -> Iterator[bytes]:
    """A request with something large in a field, between two good lines."""
    head = f'{{"session_id":"s","seq":1,"type":"llm.request","ts":"{_stamp(1)}","data":{{"{field}":'
    yield f"{_start('s')}\n{head}".encode()
    yield from content
    yield f"}}}}\n{_native_response('s', 2)}\n".encode()


def _put(path: Path, pieces: Iterator[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for piece in pieces:
            file.write(piece)


def long_line(folder: Path, size: int) -> None:
    """A line of so many bytes."""
    pieces = (b"x" * (1 << 20) for _ in range(size >> 20))
    _put(folder / "native/s.jsonl", _wrapped(iter([b'"', *pieces, b'"'])))


def long_event(folder: Path, size: int) -> None:
    """A request with a text of so many bytes."""
    words = (b"some words " * 1000 for _ in range(size // 11_000))
    content = iter([b'[{"role":"user","content":"', *words, b'"}]'])
    _put(folder / "native/s.jsonl", _wrapped(content, "messages"))


def deep_line(folder: Path, size: int) -> None:
    """A line of many empty lists, which take 30 times their size in memory."""
    inside = b"[],[]," * (size // 6)
    _put(folder / "native/s.jsonl", _wrapped(iter([b"[", inside, b"[]]"])))


def many_keys(folder: Path, count: int) -> None:
    """An object with so many keys."""
    inside = ",".join(f'"k{number}":{number}' for number in range(count))
    _put(folder / "native/s.jsonl", _wrapped(iter([b"{", inside.encode(), b"}"])))


def sparse_file(folder: Path, size: int) -> None:
    """A file of nothing but a hole."""
    place = folder / "native"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "s.jsonl").open("wb") as file:
        file.write(f"{_start('s')}\n{_native_response('s', 1)}\n".encode())
        file.truncate(size)


def gz_bomb(folder: Path, size: int) -> None:
    """A small packed file that unpacks to so many bytes."""
    place = folder / "native"
    place.mkdir(parents=True, exist_ok=True)
    with gzip.open(place / "s.jsonl.gz", "wb", compresslevel=9) as file:
        file.write(f"{_start('s')}\n{_native_response('s', 1)}\n".encode())
        for _ in range(size >> 20):
            file.write(b" " * (1 << 20))


def zstd_window(folder: Path, window_log: int) -> None:
    """A packed log with a large window."""
    from sessionlog.reader.unpack import zstd_module

    zstd: Any = zstd_module("the trap")
    place = folder / "native"
    place.mkdir(parents=True, exist_ok=True)
    parameter = zstd.CompressionParameter
    options = {parameter.window_log: window_log, parameter.enable_long_distance_matching: 1}
    with zstd.ZstdFile(place / "s.jsonl.zst", "wb", options=options) as file:
        file.write(f"{_start('s')}\n".encode())
        for seq in range(1, 1_000_000):
            file.write(f"{_native_response('s', seq)}\n".encode())


def special_files(folder: Path, count: int) -> None:
    """A pipe, and links to devices, beside a good log."""
    native_responses(folder, 3)
    os.mkfifo(folder / "native/pipe.jsonl")
    for name, target in {"zero": "/dev/zero", "random": "/dev/urandom", "memory": "/proc/self/mem"}.items():
        (folder / f"native/{name}.jsonl").symlink_to(target)


def gemini_document(folder: Path, size: int) -> None:
    """A session of Gemini CLI, one JSON document of so many bytes: many small messages."""
    place = folder / "home/.gemini/tmp/h/chats"
    message = {"id": "m", "timestamp": f"{_DAY}10:00:00.000Z", "type": "user", "content": "x"}
    one = json.dumps(message)
    head = f'{{"sessionId":"s","projectHash":"h","startTime":"{_DAY}10:00:00.000Z","messages":['
    messages = (f"{one},".encode() * 1000 for _ in range(size // (len(one) + 1) // 1000))
    _put(place / "session-2026-11-20T10-00-s.json", iter([head.encode(), *messages, one.encode(), b"]}"]))


@dataclass(frozen=True)
class Trap:
    """What a folder of logs is made of."""

    name: str
    make: Callable[[Path, int], None]
    size: int


TRAPS = (
    Trap("300k responses", native_responses, 300_000),
    Trap("700k responses", native_responses, 700_000),
    Trap("700k events", native_conversation, 700_000),
    Trap("700k Claude rows", claude_conversation, 700_000),
    Trap("700k Codex rows", codex_conversation, 700_000),
    Trap("150k sessions, one file", claude_sessions, 150_000),
    Trap("150k sessions, 150k files", native_files, 150_000),
    Trap("line of 1 GiB", long_line, 1 << 30),
    Trap("line of 63 MiB", long_line, 63 << 20),
    Trap("event of 32 MiB", long_event, (32 << 20) - 1024),
    Trap("deep line, 8 MiB", deep_line, (8 << 20) - 1024),
    Trap("deep line, 63 MiB", deep_line, 63 << 20),
    Trap("a million keys", many_keys, 1_000_000),
    Trap("sparse 4 GiB", sparse_file, 4 << 30),
    Trap("gz bomb", gz_bomb, 4 << 30),
    Trap("zstd window 128 MiB", zstd_window, 27),
    Trap("zstd window 64 MiB", zstd_window, 26),
    Trap("JSON document, 63 MiB", gemini_document, 63 << 20),
    Trap("pipe and devices", special_files, 1),
)

COMMANDS: dict[str, tuple[str, ...]] = {
    "usage, first": ("usage",),
    "usage, again": ("usage",),
    "usage --no-ledger": ("usage", "--no-ledger"),
    "usage --by session": ("usage", "--by", "session"),
    "usage --json": ("usage", "--by", "session", "--json"),
    "sessions": ("sessions",),
    "sessions --json": ("sessions", "--json"),
    "tools": ("tools",),
    "blocks": ("blocks",),
    "status": ("status",),
    "budget": ("budget",),
    "sources": ("sources",),
    "ledger": ("ledger",),
    "ledger verify": ("ledger", "verify"),
    "check": ("check",),
    "find": ("find", "words"),
    "routing-quality": ("routing-quality",),
    "scrub": ("scrub", "{logs}"),
    "archive": ("archive", "--older-than", "0h"),
    "replay": ("replay", "{log}"),
    "replay --json": ("replay", "--json", "{log}"),
    "context": ("context", "{log}"),
    "diff": ("diff", "{log}", "{log}"),
}


@dataclass(frozen=True)
class Taken:
    """What a command took.

    Attributes:
        code: Its exit code; negative for a signal, None for the time limit.
        megabytes: The greatest resident set of any of its processes.
        seconds: Until its end.
        cpu: Seconds of processor time of all its processes.
        first: Until its first byte of output; None without one.
        errors: What it wrote to stderr.
        output: What it wrote to stdout, or the first of it.
    """

    code: int | None
    megabytes: float
    seconds: float
    cpu: float
    first: float | None
    errors: str
    output: str


def environment(folder: Path, home: Path) -> dict[str, str]:
    """An environment in which a trap's logs are found, and nothing of this machine's; what is written is in `home`."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "TMPDIR") if name in os.environ}
    return {
        **kept, "HOME": str(folder / "home"), "SESSIONLOG_DIR": str(folder / "native"),
        "CLAUDE_CONFIG_DIR": str(folder / "claude"), "CODEX_HOME": str(folder / "codex"),
        "XDG_DATA_HOME": str(home / "data"), "XDG_STATE_HOME": str(home / "state"),
        "XDG_CONFIG_HOME": str(home / "config"), "NO_COLOR": "1",
    }  # fmt: skip


def logs_of(folder: Path) -> str:
    """The first log of a trap, for commands that take one."""
    found = (path for path in sorted(folder.rglob("*.json*")) if path.is_file() and not path.is_symlink())
    return str(next(found))


def run(
    command: Sequence[str], folder: Path, home: Path, *, limit: float = 120.0, address_space: int | None = None
) -> Taken:
    """Run a command on a trap, and measure it; `{logs}` and `{log}` stand for its folder and its first log.

    With `address_space` it may have no more memory than that, whether it uses it or not.
    """
    names = {"logs": str(folder), "log": logs_of(folder)}
    arguments = [word.format(**names) for word in command]
    first, figures = None, home / "figures"
    figures.unlink(missing_ok=True)
    started = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # a small process in between: what is run counts the memory of who has started it
            [sys.executable, "-c", _LAUNCHER, str(figures), str(address_space or 0), *arguments],
            stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, env=environment(folder, home),
            start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        is_over, output = False, b""
        while process.poll() is None:
            piece = process.stdout.read(1 << 20)
            output += (piece or b"")[: (1 << 16) - len(output)]
            first = time.monotonic() - started if piece and first is None else first
            if time.monotonic() - started > limit and not is_over:
                is_over = True
                os.killpg(process.pid, signal.SIGKILL)
            elif piece is None:
                select([process.stdout], [], [], 0.005)  # a sleep would make what writes much wait
            elif not piece:
                time.sleep(0.005)
        took = time.monotonic() - started
        if rest := process.stdout.read():
            output += rest[: (1 << 16) - len(output)]
            first = took if first is None else first
        process.stdout.close()
        errors.seek(0)
        text = errors.read(1 << 16).decode("utf-8", "replace")
    code, kilobytes, cpu = figures.read_text().split() if figures.exists() else (None, 0, 0)
    code = None if code is None else int(code)
    return Taken(code, int(kilobytes) / 1024, took, float(cpu), first, text, output.decode("utf-8", "replace"))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="traps whose name holds one of these words, with commas")
    parser.add_argument("--commands", help="commands whose name begins so, with commas")
    parser.add_argument("--folder", help="where the traps are made, and kept")
    parser.add_argument("--factor", type=float, default=1.0, help="of the full size")
    options = parser.parse_args()
    words = (options.only or "").split(",")
    begun = tuple((options.commands or "").split(","))
    over = 0
    with tempfile.TemporaryDirectory(prefix="traps-") as temporary:
        place = Path(options.folder or temporary)
        for trap in TRAPS:
            if not any(word in trap.name for word in words):
                continue
            folder = place / trap.name.replace(" ", "-").replace(",", "")
            if not folder.exists():
                trap.make(folder, max(1, int(trap.size * options.factor)))
            with tempfile.TemporaryDirectory(prefix="home-") as home:
                print(f"\n{trap.name}", flush=True)
                for name, command in COMMANDS.items():
                    if not name.startswith(begun):
                        continue
                    taken = run(command, folder, Path(home))
                    is_over = (
                        taken.megabytes > BOUND_MB or taken.seconds > BOUND_SECONDS or taken.code not in (0, 1, 2, 3)
                    )
                    over += is_over
                    first = "" if taken.first is None else f"first byte after {taken.first:.2f} s"
                    mark = "OVER" if is_over else ""
                    code = "killed" if taken.code is None else f"exit {taken.code}"
                    print(
                        f"  {name:20} {taken.megabytes:7.0f} MB {taken.seconds:7.2f} s {taken.cpu:7.2f} s CPU  {code:8} {mark:5} {first}",
                        flush=True,
                    )
    print(f"\n{over} over {BOUND_MB} MB or {BOUND_SECONDS:.0f} s")
    sys.exit(bool(over))


if __name__ == "__main__":
    main()
