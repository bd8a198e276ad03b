"""fizeau: where the Go original's logs are looked for, and which logs are its."""

import pytest

from sessionlog.sources.fizeau import SOURCE
from sessionlog.sources.registry import load_source
from tests.sources.logs import answered, go_start, start, write_log

GO = b'{"session_id":"s","seq":0,"type":"session.start","ts":"2026-11-20T10:00:00Z","data":{"provider":"openai"}}\n'


@pytest.mark.parametrize(
    ("here", "places"), [("/src/api", ["/src/api/.fizeau/sessions"]), ("src/api", []), ("", []), (None, [])]
)
def test_it_looks_in_the_folder_that_the_shell_is_in(here, places):
    """There is no place for all of them; other folders are named."""
    assert list(SOURCE.locate({} if here is None else {"PWD": here})) == places


@pytest.mark.parametrize(
    ("name", "head", "its"),
    [
        ("s.jsonl", GO, True),
        ("s.jsonl", GO.replace(b'{"provider"', b'{"v": 1, "provider"'), False),
        ("s.jsonl", b'{"who":"knows"}\n', False),
        ("s.txt", GO, False),
    ],
)
def test_its_logs_are_ours_without_a_version(name, head, its):
    """Else the format is the same."""
    assert SOURCE.recognises(name, head) is its


def test_each_log_tells_its_dialect_wherever_it_lies(tmp_path):
    """Whichever of the two sources reads it."""
    paths = [
        write_log(tmp_path / "go.jsonl", go_start(), answered()),
        write_log(tmp_path / "v1.jsonl", start(), answered()),
    ]
    for source in (SOURCE, load_source("native")):
        assert [source.scan(path, None).sessions[0].source for path in paths] == ["fizeau", "native"]
