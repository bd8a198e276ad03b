"""A log of 200 MB is replayed at once and in little memory."""

import json
import os
import subprocess
import sys
import time

import pytest

LIMIT_MB = 100


def write_big(path, size):
    """An agent that sends its whole history with each request, as agents do."""
    with path.open("w") as file:

        def write(kind, data):
            row = {"session_id": "big", "seq": 0, "type": kind, "ts": "2026-11-21T10:00:00Z", "data": data}
            file.write(json.dumps(row) + "\n")

        write("session.start", {"v": 1, "provider": "p", "model": "m", "prompt": "go"})
        history, turn = [{"role": "user", "content": "go"}], 0
        while file.tell() < size:
            turn += 1
            call = {"id": f"c{turn}", "name": "read", "arguments": {"path": f"f{turn}", "ratio": 1.5}}
            output = f"line {turn}\n" * 200
            write("llm.request", {"messages": history})
            write("llm.response", {"content": f"turn {turn}", "tool_calls": [call], "usage": {"input": 9, "output": 1}})
            write("tool.call", {"tool": "read", "input": call["arguments"], "output": output})
            history = [*history, {"role": "assistant", "content": f"turn {turn}", "tool_calls": [call]}][-400:]
            history.append({"role": "tool", "tool_call_id": call["id"], "content": output})


@pytest.mark.slow
def test_a_big_log_is_replayed_at_once_and_in_little_memory(tmp_path):
    """The first line comes within seconds, and memory stays under the promise."""
    log = tmp_path / "big.jsonl"
    write_big(log, 200_000_000)
    code = (
        "import resource, sys; from sessionlog.render.replay import replay\n"
        "for line in replay(sys.argv[1]): print(line, flush=True)\n"
        "print(int(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0]) if sys.platform == 'linux'"
        " else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"  # on Linux also of who has started it
    )
    begin = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", code, str(log)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    ) as child:  # fmt: skip
        first, waited = child.stdout.readline(), time.monotonic() - begin
        rest = child.stdout.read()
        kilobytes = int(child.stderr.read()) / (1024 if sys.platform == "darwin" else 1)
    assert first.startswith("━━ big")
    assert waited < 5
    assert rest.count("\n") > 10_000
    assert kilobytes < LIMIT_MB * 1000
