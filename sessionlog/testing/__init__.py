"""Tools to test code that uses sessionlog: logs as models, a logger that writes to memory, generated events.

A recorded log stands in for the model; a request that it does not hold fails with what has changed:

    def test_my_agent_fixes_the_bug():
        with ReplayModel("tests/runs/fix.jsonl") as replay:
            result = agent.run_sync("Fix the bug", model=replay.pydantic_ai())
        assert "fixed" in result.output

`MemorySink` is a full `SessionLogger`, with its numbering, encoding, redaction and totals; only the file is missing.
So code that works with it works with a log, and its events can be inspected.

    def test_my_agent_records_its_tools():
        with MemorySink() as log:
            run_my_agent(on_event=log.callback())
        assert [event.data["tool"] for event in log.of_type("tool.call")] == ["search", "bash"]

A source of your own is checked on logs of its agent:

    def test_my_source_keeps_its_promises():
        check_source(SOURCE, "tests/logs-of-my-agent")

A session store of your own passes the tests that ours pass:

    class TestMyStore(SessionStoreContract):
        def make_store(self, tmp_path):
            return MyStore(tmp_path / "sessions")

Names are imported when they are first used: pytest imports this package for its plugin in every project.
"""

from __future__ import annotations

from sessionlog.lazy_imports import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.conversation.stores.contract import SessionStoreContract
    from sessionlog.source_check import check_source
    from sessionlog.testing.event_strategy import event_strategy
    from sessionlog.testing.memory_sink import FixedClock, MemorySink
    from sessionlog.testing.replay.model import ReplayModel

__all__ = ["FixedClock", "MemorySink", "ReplayModel", "SessionStoreContract", "check_source", "event_strategy"]

__getattr__, __dir__ = lazy_names(
    globals(),
    {
        "conversation.stores.contract": "SessionStoreContract",
        "source_check": "check_source",
        "testing.event_strategy": "event_strategy",
        "testing.memory_sink": "FixedClock MemorySink",
        "testing.replay.model": "ReplayModel",
    },
)
