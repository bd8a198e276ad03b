"""Print how long a history takes to cut, by its length: `python -m benchmarks.bench_truncation`.

Each step is ten times the one before, so a factor near ten is linear. Beside ours is what the seed does: everything that
is left is estimated again for each message dropped. The fastest of three rounds is shown.
"""

import time
from operator import itemgetter

from benchmarks.measure import print_table
from sessionlog.conversation.history.conversation import Conversation
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.history.weight import estimate_tokens
from sessionlog.messages.message import Message, ToolRequest

LENGTHS = (1000, 10_000, 100_000)
SEED_LENGTHS = (100, 1000)
ROUNDS = 3
GOAL_S = 1.0
"""What 100,000 messages may take."""


def history(length):
    """Turns of four messages, with a tool each."""
    made = []
    for turn in range(length // 4):
        call = ToolRequest(f"c{turn}", "read", {"path": f"src/module_{turn}.py"})
        made += [
            Message.user(f"Look at module {turn} and say what it does."),
            Message.assistant(tool_calls=[call]),
            Message.tool(f"def function_{turn}(value):\n    return value + {turn}\n", call.id, name="read"),
            Message.assistant(f"Module {turn} adds {turn} to a value."),
        ]
    return made


def cut(length, **fields):
    """Seconds to add all messages, and to cut them to a tenth of their tokens."""
    messages = history(length)
    start = time.perf_counter()
    conversation = Conversation(messages=messages)
    weighed = time.perf_counter()
    budget = conversation.estimated_tokens // 10
    conversation.settings = ConversationSettings(max_conversation_tokens=budget, **fields)
    before = time.perf_counter()
    dropped = conversation.truncate_history()
    return weighed - start, time.perf_counter() - before, int(dropped)


def cut_as_the_seed(length):
    """Seconds of its algorithm, less the orphans."""
    messages = history(length)
    target = sum(map(estimate_tokens, messages)) * 0.075
    start = time.perf_counter()
    while sum(map(estimate_tokens, messages)) >= target:
        del messages[1]
    return time.perf_counter() - start


def main():
    """Print the tables."""
    rows, last = [], {}
    for length in LENGTHS:
        for name, fields in (
            ("drop_oldest", {}),
            ("summarise", {"truncation_strategy": "summarise", "summary": lambda gone: f"{len(gone)} messages " * 20}),
            ("one's own", {"truncation_strategy": lambda all_of_it, _: all_of_it[-400:]}),
        ):
            weighing, cutting, dropped = min((cut(length, **fields) for _ in range(ROUNDS)), key=itemgetter(1))
            factor = f"x {cutting / last[name]:.1f}" if name in last else ""
            rows.append([name, f"{length:,}", f"{dropped:,}", f"{weighing:.3f}", f"{cutting:.3f}", factor])
            last[name] = cutting
    for length in SEED_LENGTHS:
        rows.append(["as the seed", f"{length:,}", "", "", f"{cut_as_the_seed(length):.3f}", ""])
    print_table(["strategy", "messages", "dropped", "weigh s", "cut s", "growth"], rows)
    print(f"goal: {LENGTHS[-1]:,} messages in {GOAL_S:g} s: {'met' if last['drop_oldest'] <= GOAL_S else 'MISSED'}")


if __name__ == "__main__":
    main()
