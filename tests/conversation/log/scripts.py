"""Random scripts of what a session does, played to a Recorder beside the history that a session would hold."""

from hypothesis import strategies as st

from sessionlog.conversation.history.rules import open_calls, repair_history
from sessionlog.conversation.history.truncation import Truncation
from sessionlog.conversation.log.recorder import Recorder
from sessionlog.conversation.turns.pieces import Reply, ToolReturned
from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.message import ContentPart, Message, ToolRequest

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_JSON = st.dictionaries(st.sampled_from(["path", "n"]), _TEXTS | st.integers(0, 9) | st.none(), max_size=2)
_PARTS = st.lists(
    st.builds(ContentPart.of_text, _TEXTS)
    | st.builds(ContentPart.of_image, st.binary(max_size=4))
    | st.builds(lambda text: ContentPart(type="thinking", extra={"thinking": text}), _TEXTS),
    min_size=1,
    max_size=2,
).map(tuple)
_CONTENT = _TEXTS | _PARTS
STEPS = st.tuples(
    st.sampled_from(
        ["ask", "ask", "retry", "delta", "delta", "answer", "answer", "call", "call", "result", "result", "fail",
         "partial", "add", "undo", "clear", "cut", "end", "lose"]
    ),
    _CONTENT,
    _TEXTS,
    _JSON,
    st.integers(0, 5),
)  # fmt: skip
SCRIPTS = st.lists(STEPS, max_size=25)


class Player:
    """Plays a script.

    Attributes:
        history: What the session holds now.
        usage: What it has used.
        state: How its turn stands.
    """

    def __init__(self, sink, *, system=None, parent=None, inherited=()):
        self.sink, self.recorder = sink, Recorder(sink)
        self.history, self.usage = list(inherited), TokenUsage()
        self.state = _shown(inherited) if inherited else "new"
        self.recorder.begin(system=system, parent=parent, inherited=inherited)
        self._pieces, self._waits, self._calls = [], False, 0

    def expected(self):
        """Return what a log that is read now has to give: history, usage, state."""
        pieces = [Message.assistant("".join(self._pieces), partial="interrupted")] if self._pieces else []
        return [*self.history, *pieces], self.usage, self.state

    def play(self, step):
        """Do one step, if it can be done now; return whether it was."""
        kind, content, text, values, number = step
        return getattr(self, f"_{kind}")(content, text, values, number)

    def _ask(self, content, text, values, number):
        self._leave()
        for call in open_calls(self.history):
            late = Message("tool", "late", tool_call_id=call.id, name=call.name, partial="interrupted")
            self.history.append(late)
        self.history.append(Message.user(content, name=text or None))
        self.recorder.request(self.history, model="m", options={"temperature": number})
        self._waits, self.state = True, "interrupted"
        return True

    def _retry(self, content, text, values, number):
        del content, values
        if not self._waits or self._pieces:
            return False
        self.recorder.response(None, error=f"failed {text}")
        self.recorder.request(self.history, attempt=number + 2)
        self.state = "interrupted"
        return True

    def _delta(self, content, text, values, number):
        del content, values, number
        if not self._waits or not text:
            return False
        self._pieces.append(text)
        self.recorder.delta(text)
        return True

    def _answer(self, content, text, values, number):
        del values
        return self._respond(Message.assistant(content), "complete", finish_reason=text, used=number)

    def _call(self, content, text, values, number):
        calls = []
        for _ in range(1 + number % 3):
            self._calls += 1
            calls.append(ToolRequest(f"c{self._calls}", "read", values, extra={"cache": text} if text else {}))
        return self._respond(Message.assistant(content, tool_calls=calls), "interrupted", used=number)

    def _respond(self, message, state, *, used=0, finish_reason=None):
        if not self._waits:
            return False
        usage = TokenUsage(input=used, output=1)
        self.history.append(message)
        self.usage += usage
        self.recorder.response(message, reply=Reply(message=message, usage=usage, finish_reason=finish_reason))
        self._pieces, self._waits, self.state = [], False, state
        return True

    def _result(self, content, text, values, number):
        del values
        calls = [] if self._waits else open_calls(self.history)
        if not calls:
            return False
        call = calls[number % len(calls)]
        said = Message("tool", content, tool_call_id=call.id, name=text or call.name)
        self.history.append(said)
        self.recorder.tool(ToolReturned(call, said, duration_ms=1.5, error=text or None))
        if len(calls) == 1 and number % 2:
            self.recorder.request(self.history)
            self._waits, self.state = True, "interrupted"
        return True

    def _fail(self, content, text, values, number):
        del content, values, number
        if not self._waits:
            return False
        said = "".join(self._pieces)
        message = Message.assistant(said, partial="failed") if said else None
        if message is not None:
            self.history.append(message)
        self.recorder.response(message, error=ValueError(text), partial="failed")
        self._pieces, self._waits, self.state = [], False, "failed"
        return True

    def _partial(self, content, text, values, number):
        del content, text, values
        if not self._waits or not self._pieces:
            return False
        word = ("cancelled", "interrupted")[number % 2]
        message = Message.assistant("".join(self._pieces), partial=word)
        self.history.append(message)
        self.recorder.response(message, partial=word)
        self._pieces, self._waits, self.state = [], False, word
        return True

    def _add(self, content, text, values, number):
        del values
        if self._waits or open_calls(self.history):
            return False
        added = [Message.user(content), Message.assistant(text, partial="summary" if number == 1 else None)]
        self.history += added[: 1 + number % 2]
        self.recorder.sync(self.history)
        return True

    def _undo(self, content, text, values, number):
        del content, text, values
        if self._waits or number >= len(self.history) or not number:
            return False
        left = self.history[: len(self.history) - number]
        if repair_history(left) != left:
            return False
        self.recorder.popped(number)
        self.history, self.state = left, _shown(left)
        return True

    def _clear(self, content, text, values, number):
        del content, text, values, number
        if self._waits:
            return False
        self.recorder.cleared()
        self.history, self.state = [], "new"
        return True

    def _cut(self, content, text, values, number):
        del content, values
        if self._waits or not self.history:
            return False
        left = repair_history([message for n, message in enumerate(self.history) if (n + number) % 3 or n > number])
        if text:
            left.insert(0, Message.user(text))
        self.recorder.truncated(self.history, left, Truncation((), strategy="own", is_over_budget=number == 2))
        self.history = left
        return True

    def _end(self, content, text, values, number):
        del content, text, values
        if self._waits:
            return False
        status = ("success", "cancelled", "error")[number % 3]
        self.recorder.end(status)
        if self.state == "interrupted":
            whole = self.history and self.history[-1].role == "assistant" and not self.history[-1].partial
            by_status = {"success": "complete" if whole else "interrupted", "cancelled": "cancelled", "error": "failed"}
            self.state = by_status[status]
        return True

    def _lose(self, content, text, values, number):
        """The disk is full for one request; the agent is asked all the same, and the next request makes good for it."""
        if self._waits:
            return False
        self.sink.failure = OSError(28, "full")
        self._ask(content, text, values, number)
        self.recorder.delta("lost")
        self.recorder.response(None, error="lost")
        self.sink.failure = None
        self.recorder.request(self.history)
        return True

    def _leave(self):
        """A process that was killed leaves an answer half-way; the next one goes on with what there is."""
        if self._pieces:
            self.history.append(Message.assistant("".join(self._pieces), partial="interrupted"))
        self._pieces, self._waits = [], False


def _shown(messages):
    last = messages[-1]
    if last.partial in ("failed", "cancelled", "interrupted"):
        return last.partial
    return "complete" if last.role == "assistant" and not last.tool_calls else "interrupted"
