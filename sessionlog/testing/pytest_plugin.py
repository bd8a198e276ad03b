"""The pytest plugin: a test that names a log gets it as a model, and can record it anew.

    @pytest.mark.sessionlog("runs/fix.jsonl")
    def test_the_agent_fixes_the_bug(replay_model):
        result = agent.run_sync("Fix the bug", model=replay_model.pydantic_ai("anthropic:claude-opus-4-5"))
        assert "fixed" in result.output

`pytest` replays the log, beside the test's file; `pytest --sessionlog-record` asks the real model, and replaces the log
if the test passes. pytest imports this module in every project that has sessionlog installed, so everything else is
imported by the tests that use it.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sessionlog.testing.replay.model import ReplayModel
    from sessionlog.testing.replay.recorder import Recorder

_RECORD = "--sessionlog-record"
_HAS_PASSED = pytest.StashKey[bool]()
_REPLAY = pytest.StashKey["ReplayModel"]()
_RECORDED = pytest.StashKey[dict[str, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--sessionlog-record`."""
    text = "Ask the real models, and record anew the logs that tests marked with `sessionlog` replay."
    parser.getgroup("sessionlog").addoption(_RECORD, action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    text = "sessionlog(path, **options): the log that `replay_model` replays; options are those of ReplayModel."
    config.addinivalue_line("markers", text)


@pytest.hookimpl(hookwrapper=True)  # `wrapper` needs pluggy 1.2: the pytest of Debian 12 would not start
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Note whether the test itself has passed; show the misses that a failed one has caught."""
    outcome = yield
    if call.when == "call":
        report = outcome.get_result()
        item.stash[_HAS_PASSED] = report.passed
        replay = item.stash.get(_REPLAY, None)
        for miss in map(str, replay.misses if replay is not None and report.failed else ()):
            if miss.partition("\n")[0] not in report.longreprtext:
                report.sections.append(("request without a recording", miss))


@pytest.fixture
def replay_model(request: pytest.FixtureRequest) -> Iterator[ReplayModel | Recorder]:
    """A `ReplayModel` of the log that the marker `sessionlog` names; with `--sessionlog-record`, what records it.

    A request that the log does not hold fails the test, even if the code under test has caught the error.
    """
    marker = request.node.get_closest_marker("sessionlog")
    if marker is None or len(marker.args) != 1:
        pytest.fail('mark the test with its log: @pytest.mark.sessionlog("runs/NAME.jsonl")', pytrace=False)
    path = os.path.join(request.path.parent, marker.args[0])
    if request.config.getoption(_RECORD):
        yield from _record(request, path)
    else:
        yield from _replay(request, path, marker.kwargs)


def _replay(request: pytest.FixtureRequest, path: str, options: dict[str, Any]) -> Iterator[ReplayModel]:
    from sessionlog.testing.replay.model import ReplayModel

    if not os.path.exists(path):
        pytest.fail(f"{path} is missing; record it with: pytest {_RECORD} '{request.node.nodeid}'", pytrace=False)
    replay = request.node.stash[_REPLAY] = ReplayModel(path, **options)
    yield replay
    if request.node.stash.get(_HAS_PASSED, False):
        replay.check()


def _record(request: pytest.FixtureRequest, path: str) -> Iterator[Recorder]:
    from sessionlog.testing.replay.recorder import Recorder

    others = request.config.stash.setdefault(_RECORDED, {})
    other = others.setdefault(os.path.abspath(path), request.node.nodeid)
    if other != request.node.nodeid:
        pytest.fail(f"{path} is recorded by {other} already; give this test a log of its own", pytrace=False)
    recorder = Recorder(path)
    try:
        yield recorder
        if request.node.stash.get(_HAS_PASSED, False):
            recorder.save()
    finally:
        recorder.discard()
