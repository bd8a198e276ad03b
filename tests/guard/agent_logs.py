"""Small logs of the guarded agents, written row by row as the real ones write them, and the JSON of their hooks."""

import json
from datetime import UTC, datetime, timedelta


class AgentLog:
    """A log of one session under a home folder, and the hooks of this session.

    Attributes:
        began: The moment at which it was made: budgets count the day and the last minutes.
        path: The log.
        calls: The number of calls that were logged.
    """

    agent = session = tool = result_of = ""
    prompt_event = call_event = ""

    def __init__(self, home, name, *, cwd="/src/api"):
        self.began = datetime.now(UTC)
        self.path = home / f"{self.began:{name}}"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.cwd, self.calls, self._rows = cwd, 0, 0

    def append(self, *rows):
        """Append rows, each with a time of its own."""
        with self.path.open("ab") as log:
            for row in rows:
                log.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")

    def time(self):
        """The time of the next row, shortly before now."""
        self._rows += 1
        return (self.began - timedelta(seconds=60) + timedelta(milliseconds=self._rows)).strftime(
            "%Y-%m-%dT%H:%M:%S.%fZ"
        )

    def hook(self, event, **more):
        """The JSON that the agent writes to its hook's stdin."""
        where = {"session_id": self.session, "transcript_path": str(self.path), "cwd": self.cwd}
        return {**where, "hook_event_name": event, **more}

    def prompt_hook(self):
        """The hook before a prompt."""
        return self.hook(self.prompt_event, prompt="go on")

    def call_hook(self, command="ls src"):
        """The hook before a tool call that is not in the log."""
        return self.hook(self.call_event, tool_name=self.tool, tool_input={"command": command})

    def request(self, command="ls src"):
        """Log a response that makes a call, and return the hook before it."""
        self.calls += 1
        self.response(f"call-{self.calls}", command)
        return self.call_hook(command) | {"tool_use_id": f"call-{self.calls}"}

    def finished(self, command="ls src", result="main.py"):
        """Log a response that makes a call, and the call's result."""
        hook = self.request(command)
        self.result(f"call-{self.calls}", command, result)
        return hook


class ClaudeCode(AgentLog):
    """Claude Code: a response is an assistant row, a result is in a user row."""

    agent, session, tool = "claude-code", "11111111-2222-4333-8444-555555555555", "Bash"
    prompt_event, call_event = "UserPromptSubmit", "PreToolUse"

    def __init__(self, home, *, subagent="", model="claude-sonnet-4-5-20250929", **more):
        folder, self._model = ".claude/projects/-src-api", model
        name = f"{folder}/{self.session}"
        super().__init__(home, f"{name}/subagents/agent-{subagent}.jsonl" if subagent else f"{name}.jsonl", **more)
        self._side = {"isSidechain": True, "agentId": subagent} if subagent else {"isSidechain": False}
        self._name = subagent or "main"
        self.prompt("make the tests pass")

    def _row(self, kind, message, **more):
        row = {"type": kind, "sessionId": self.session, "cwd": self.cwd, "version": "2.1.330", "timestamp": self.time()}
        self.append({**row, **self._side, "uuid": f"{self._name}-{self._rows}", "message": message, **more})

    def prompt(self, text):
        """Log a prompt."""
        self._row("user", {"role": "user", "content": text})

    def response(self, call, command):
        """Log a response with a call: 10 input tokens, 1,000 from the cache, 100 output tokens."""
        usage = {"input_tokens": 10, "cache_read_input_tokens": 1000, "output_tokens": 100}
        block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command, "description": call}}
        key = f"{self._name}-{self.calls}"
        message = {"id": f"msg_{key}", "role": "assistant", "model": self._model, "content": [block], "usage": usage}
        self._row("assistant", {**message, "stop_reason": "tool_use"}, requestId=f"req_{key}")

    def result(self, call, _, text):
        """Log a result."""
        block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": False}
        self._row("user", {"role": "user", "content": [block]})


class Codex(AgentLog):
    """Codex: rows of a rollout; results have an id and a duration that always differ."""

    agent, session, tool = "codex", "01a20997-41b0-75f1-b618-82f05fdb923d", "Bash"
    prompt_event, call_event = "UserPromptSubmit", "PreToolUse"

    def __init__(self, home, **more):
        folder = ".codex/sessions/%Y/%m/%d"
        super().__init__(home, f"{folder}/rollout-%Y-%m-%dT%H-%M-%S-{self.session}.jsonl", **more)
        meta = {"id": self.session, "cwd": self.cwd, "cli_version": "0.169.0", "model_provider": "openai"}
        self._row("session_meta", **meta, originator="codex_exec", source="exec", timestamp=self.time())
        self._row("turn_context", turn_id="t-1", cwd=self.cwd, model="gpt-5.1-codex")
        self.prompt("make the tests pass")

    def _row(self, kind, /, **payload):
        self.append({"timestamp": self.time(), "type": kind, "payload": payload})

    def prompt(self, text):
        """Log a prompt."""
        self._row("response_item", type="message", role="user", content=[{"type": "input_text", "text": text}])
        self._row("event_msg", type="user_message", message=text)

    def response(self, call, command):
        """Log a response with a call: 10 input tokens, 1,000 from the cache, 100 output tokens."""
        given = json.dumps({"cmd": command, "yield_time_ms": 1000 + self.calls})
        self._row("response_item", type="function_call", name="exec_command", arguments=given, call_id=call)
        counts = {"input_tokens": 1010, "cached_input_tokens": 1000, "output_tokens": 100, "total_tokens": 1110}
        total = {name: count * self.calls for name, count in counts.items()}
        self._row("event_msg", type="token_count", info={"total_token_usage": total, "last_token_usage": counts})

    def result(self, call, _, text):
        """Log a result."""
        lines = f"Chunk ID: {self.calls:06x}\nWall time: 0.{self.calls} seconds\nOutput:\n{text}\n"
        self._row("response_item", type="function_call_output", call_id=call, output=lines)


class Gemini(AgentLog):
    """Gemini CLI: a response is written again with its calls and their results; hooks have no call's id."""

    agent, session, tool = "gemini", "fab993e5-5467-4b07-a1e7-96d73d10e8fc", "run_shell_command"
    prompt_event, call_event = "BeforeAgent", "BeforeTool"

    def __init__(self, home, **more):
        folder = ".gemini/tmp/api"
        super().__init__(home, f"{folder}/chats/session-%Y-%m-%dT%H-%M-{self.session[:8]}.jsonl", **more)
        (home / folder / ".project_root").write_text(self.cwd)
        self.append({"sessionId": self.session, "projectHash": "0" * 64, "startTime": self.time(), "kind": "main"})
        self.prompt("make the tests pass")

    def prompt(self, text):
        """Log a prompt."""
        time = self.time()
        self.append({"id": f"user-{self._rows}", "timestamp": time, "type": "user", "content": [{"text": text}]})

    def response(self, call, command):
        """Log a response: 10 input tokens, 1,000 from the cache, 100 output tokens; its call is logged when it ends."""
        tokens = {"input": 1010, "output": 100, "cached": 1000, "thoughts": 0, "tool": 0, "total": 1110}
        row = {"id": f"answer-{self.calls}", "timestamp": self.time(), "type": "gemini", "content": "", "thoughts": []}
        self._answer = {**row, "tokens": tokens, "model": "gemini-2.5-pro"}
        self.append(self._answer)

    def result(self, call, command, text):
        """Log the call with its result."""
        output = {"output": f"<untrusted_context>\nOutput: {text}\nProcess Group PGID: {9000 + self.calls}\n"}
        answer = {"functionResponse": {"id": call, "name": self.tool, "response": output}}
        done = {"id": call, "name": self.tool, "args": {"command": command}, "status": "success", "result": [answer]}
        self.append({**self._answer, "toolCalls": [{**done, "timestamp": self.time()}]})
        row = {"id": f"result-{self.calls}", "timestamp": self.time(), "type": "user"}
        self.append({**row, "content": [answer]})

    def request(self, command="ls src"):
        """Log a response that makes a call, and return the hook before it."""
        hook = super().request(command)
        del hook["tool_use_id"]
        return hook


LOGS = {log.agent: log for log in (ClaudeCode, Codex, Gemini)}
"""Log by the agent's id."""
