"""docs/export.md: its block sends, and its names are those that arrive."""

import re
from pathlib import Path

from tests.export.collectors import attributes

PAGE = (Path(__file__).parents[2] / "docs" / "export.md").read_text("utf-8")


def test_the_block_sends(receiver, log, monkeypatch, capsys, tmp_path):
    """To a collector of this test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    log.parent.rename(tmp_path / "runs")
    [block] = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(block.replace("http://localhost:4318", receiver.url), {})
    assert capsys.readouterr().out == "2 requests, 1 tool calls, 7 points\n"


def test_the_page_names_what_arrives(send, receiver, log):
    """Every attribute and every metric."""
    send(log.parent)
    named = set(re.findall(r"`(?:….)?((?:gen_ai|sessionlog|error|service|process)[a-z_.]+)", PAGE))
    arrived = {name for span in receiver.spans() for name in attributes(span)}
    usage = {name for name in arrived if name.startswith("gen_ai.usage.")}
    assert arrived - usage - {"gen_ai.operation.name"} <= named
    short = set(re.findall(r"`….([a-z_.]+)`", PAGE))
    for metric in {name for name, *_ in receiver.points()}:
        assert metric in named or metric.removeprefix("gen_ai.client.inference.usage.") in short
