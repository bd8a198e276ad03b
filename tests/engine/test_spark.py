"""The engine Spark, on a cluster in this process: reports are those of one machine, and what cannot be done is a sentence."""

import sys
from pathlib import Path

import fsspec
import pytest
from msgspec.structs import replace

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.engine import spark, spark_session
from sessionlog.engine.spark import Spark
from sessionlog.errors import EngineFailed, InvalidQuery, MissingExtra
from sessionlog.sources.registry import load_source
from tests.engine import cluster
from tests.engine.reports import documents
from tests.security.commands import STORY
from tests.sources.homes import CASES, all_cases, build_home

QUICK = (
    "claude-code/every-kind-of-copy", "claude-code/forks", "codex/models", "gemini/cli-home", "opencode/v1-database",
)  # fmt: skip


@pytest.mark.parametrize(
    "case", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in all_cases()]
)
def test_reports_are_those_of_one_machine(case, tmp_path, monkeypatch):
    """Every report, to the token, the nano-dollar and the percentile, over the logs of every agent."""
    home = str(build_home(case, tmp_path))
    expected = documents([home], jobs=1)
    cluster.use(monkeypatch)
    assert documents([home], engine=Spark()) == expected


@pytest.mark.parametrize(
    "folder", ["together", *(pytest.param(name, marks=pytest.mark.slow) for name in ("usage", "routing", "reader"))]
)
def test_requests_on_the_wire_and_damaged_logs_too(folder, monkeypatch):
    """Sessions that were recorded twice, and logs with every kind of damage."""
    path = str(CASES.parent / folder)
    expected = documents([path], jobs=1)
    cluster.use(monkeypatch)
    assert documents([path], engine=Spark()) == expected


def test_remote_logs_are_read_by_workers(monkeypatch):
    """The driver lists the place, workers open the logs: reports are those of the same logs here."""
    folder = CASES.parent / "together"
    store, root = fsspec.core.url_to_fs("memory://spark/together")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            store.pipe_file(f"{root}/{path.relative_to(folder)}", path.read_bytes())
    here, names = aggregate_usage(str(folder), by=["source", "session"]).to_dict(), ("rows", "totals", "provenance")
    cluster.use(monkeypatch)
    there = aggregate_usage("memory://spark/together", by=["source", "session"], engine=Spark()).to_dict()
    assert [there[name] for name in names] == [here[name] for name in names]
    assert here["rows"]


def test_logs_are_divided_into_batches_of_some_size(tmp_path, monkeypatch):
    """Each log is in one batch, large ones alone; a small job has a task for each core."""
    session = cluster.use(monkeypatch, cores=3)
    monkeypatch.setattr(spark, "_LEAST", 1 << 16)
    story = Path(STORY).read_bytes()
    for number in range(9):
        (tmp_path / f"s{number}.jsonl").write_bytes(story)
    assert aggregate_usage(str(tmp_path), engine=Spark()).totals.sessions == 9
    assert len(session.batches) == 9


def test_a_source_of_another_package_is_read_here(monkeypatch):
    """Workers do not have it."""
    path, names = str(CASES.parent / "usage"), ["usage", "tools"]
    expected = documents([path], names, jobs=1)
    session = cluster.use(monkeypatch)
    own = replace(load_source("native"))
    monkeypatch.setattr(spark, "load_source", lambda name: own)
    assert documents([path], names, engine=Spark()) == expected
    assert session.batches == []


def test_a_log_that_a_worker_cannot_read_is_a_problem(tmp_path, monkeypatch):
    """It was listed, and is gone when a worker opens it: named by its path, and the other logs count."""
    cluster.use(monkeypatch)
    good, gone = tmp_path / "good.jsonl", tmp_path / "gone.jsonl"
    for path in (good, gone):
        path.write_bytes(Path(STORY).read_bytes())
    divide = spark.divide

    def vanish(*given):
        gone.unlink()
        return divide(*given)

    monkeypatch.setattr(spark, "divide", vanish)
    report = aggregate_usage(str(tmp_path), engine=Spark())
    assert (report.totals.sessions, report.problem_count) == (1, 1)
    assert str(report.problems[0]) == f"{gone} unreadable no such file or directory"


def test_a_relative_path_is_one_for_all_workers(tmp_path, monkeypatch):
    """Their current folder is another."""
    cluster.use(monkeypatch)
    (tmp_path / "s.jsonl").write_bytes(Path(STORY).read_bytes())
    monkeypatch.chdir(tmp_path)
    assert aggregate_usage("s.jsonl", engine="spark").totals.sessions == 1


def test_without_logs_no_cluster_is_started(tmp_path):
    """An empty folder, or one that does not exist."""
    assert aggregate_usage(str(tmp_path), engine="spark").is_empty
    assert aggregate_usage(str(tmp_path / "none"), engine="spark").is_empty


def test_without_the_extra_it_is_a_sentence(monkeypatch):
    """For the command, too."""
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtra, match=r"Spark needs: pip install 'sessionlog\[spark\]'"):
        aggregate_usage(str(CASES.parent / "usage"), engine="spark")


def test_an_unknown_engine_is_a_wrong_call():
    """Before anything is read."""
    with pytest.raises(InvalidQuery, match="there is no engine 'ray'; there is spark"):
        aggregate_usage(engine="ray")


def test_failures_have_one_sentence():
    """The line with the reason, and no trace of Java."""

    class PySparkError(Exception):
        __module__ = "pyspark.errors"

    trace = "[PYTHON_EXCEPTION] in a worker:\nTraceback (most recent call last):\nModuleNotFoundError: No module named 'orjson'\n\tat org.apache"
    expected = r"^the Spark job failed: ModuleNotFoundError: No module named 'orjson'$"
    with pytest.raises(EngineFailed, match=expected), spark_session.failures_explained():
        raise PySparkError(trace)
    with pytest.raises(ZeroDivisionError), spark_session.failures_explained():
        raise ZeroDivisionError


def test_without_java_it_is_a_sentence(tmp_path, monkeypatch):
    """Which names the variable that leads nowhere."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with (tmp_path / "messages").open("w+b") as messages:
        assert spark_session._why_not_started(messages, OSError()) == (
            f"Spark needs Java, 17 or newer, and $JAVA_HOME ({tmp_path}) has no bin/java: install it, or set JAVA_HOME"
        )


def test_the_reason_of_a_failed_start_is_its_last_error(tmp_path, monkeypatch):
    """Of what Spark wrote; without any, the exception's."""
    monkeypatch.setattr(spark_session.shutil, "which", lambda name, path: "/bin/java")
    with (tmp_path / "messages").open("w+b") as messages:
        assert spark_session._why_not_started(messages, OSError("gone\nat x")) == "Spark cannot be started: gone"
        messages.write(b"26/11/23 INFO a: b\n26/11/23 21:54:20 ERROR Standalone: All masters are unresponsive\n")
        assert spark_session._why_not_started(messages, OSError()) == (
            "Spark cannot be started: All masters are unresponsive"
        )
