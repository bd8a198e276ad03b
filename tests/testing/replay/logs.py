"""Logs to replay: a small agent's session in the formats of all providers, and a session from a list of events."""

from sessionlog.logger.session_logger import SessionLogger

ASKED = "What does a.py do?"
CALL_ID, RESULT, ANSWER = "call_9", '{"lines": 1, "text": "print(1)"}', "It prints 1."
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
SYSTEM = "Be brief."

CHAT = {
    "messages": [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": "Let me look.", "tool_calls": [
            {"id": CALL_ID, "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}},
        ]},
        {"role": "tool", "tool_call_id": CALL_ID, "content": RESULT},
    ],
    "tools": [{"type": "function", "function": {"name": "read", "description": "Read", "parameters": SCHEMA}}],
}  # fmt: skip
RESPONSES = {
    "messages": [
        {"role": "developer", "content": SYSTEM},
        {"role": "user", "content": [{"type": "input_text", "text": ASKED}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "A file."}]},
        {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_z", "name": "read", "arguments": '{"path":"a.py"}'},
        {"type": "function_call_output", "call_id": "call_z", "output": '{"text":"print(1)","lines":1}'},
    ],
    "tools": [{"type": "function", "name": "read", "description": "Read", "parameters": SCHEMA}],
}  # fmt: skip
MESSAGES = {
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]},
        {"role": "user", "content": [{"type": "text", "text": ASKED, "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "A file.", "signature": "c2ln"}, {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py"}},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": RESULT}]},
    ],
    "tools": [{"name": "read", "description": "Read", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}}],
}  # fmt: skip
GEMINI = {
    "messages": [
        {"role": "system", "parts": [{"text": SYSTEM}]},
        {"role": "user", "parts": [{"text": ASKED}]},
        {"role": "model", "parts": [
            {"text": "Let me look."}, {"functionCall": {"name": "read", "args": {"path": "a.py"}}},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "read", "response": {"output": {"lines": 1, "text": "print(1)"}}}},
        ]},
    ],
    "tools": [{"functionDeclarations": [{"name": "read", "description": "Read", "parameters": SCHEMA}]}],
}  # fmt: skip
FORMATS = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES, "gemini": GEMINI}
"""The second request of the session, in each format."""


def write(folder, *events, name="s", **options):
    """Write a log of requests (lists of messages or keyword arguments) and answers; return its path.

    A text or a mapping with `content`, `tool_calls` or `error` is an answer; a pair is any event.
    """
    with SessionLogger(folder, name, **options) as log:
        for event in events:
            if isinstance(event, tuple):
                log.emit(*event)
            elif isinstance(event, list) or (isinstance(event, dict) and "messages" in event):
                fields = dict(event) if isinstance(event, dict) else {"messages": event}
                log.llm_request(fields.pop("messages"), **fields)
            else:
                log.llm_response(**({"content": event} if isinstance(event, str) else event))
    return folder / f"{name}.jsonl"


def user(text):
    """A message of the user."""
    return {"role": "user", "content": text}


def calls(*names):
    """An answer that calls tools with these names."""
    return {"tool_calls": [{"id": f"c-{name}", "name": name, "arguments": {}} for name in names]}


def session(folder, **options):
    """The log of the agent's session: two requests, as OpenAI's SDK sends them."""
    tools = CHAT["tools"]
    called = {"content": "Let me look.", "tool_calls": [
        {"id": CALL_ID, "name": "read", "arguments": '{"path": "a.py"}'},
    ]}  # fmt: skip
    usage = {"input": 100, "output": 20, "cache_read": 60}
    return write(
        folder,
        {"messages": CHAT["messages"][:2], "tools": tools, "model": "gpt-5", "temperature": 0},
        {**called, "usage": usage, "model": "gpt-5-2025-08-07", "finish_reason": "tool_calls"},
        {"messages": CHAT["messages"], "tools": tools, "model": "gpt-5", "temperature": 0},
        {"content": ANSWER, "usage": usage, "model": "gpt-5-2025-08-07", "finish_reason": "stop"},
        **options,
    )
