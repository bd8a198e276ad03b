"""Amp's threads: what their ledger of usage says counts once, whatever message it names."""

import json

import pytest

from sessionlog.sources.amp import SOURCE


@pytest.mark.parametrize("number", [{"": None}, [1], "1", 1.5, None, 77])
def test_usage_of_a_message_that_is_not_there_counts(tmp_path, number):
    """An event that names no message of the thread is a request of its own; one that does is that message's."""
    events = [
        {"timestamp": f"2026-11-10T10:00:0{at}.000Z", "model": "gpt-5", "tokens": {"input": 30, "output": 3}} | one
        for at, one in enumerate(({"toMessageId": 1}, {"toMessageId": number}, {}))
    ]
    message = {"role": "assistant", "messageId": 1, "content": [{"type": "text", "text": "hi"}]}
    thread = {"v": 1, "id": "T-1", "created": 1794304800000, "messages": [message], "usageLedger": {"events": events}}
    path = tmp_path / "T-1.json"
    path.write_text(json.dumps(thread))
    [session] = SOURCE.scan(str(path), None).sessions
    assert [record.usage.input for record in session.records] == [30, 30, 30]
