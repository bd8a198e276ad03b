"""A real Spark: local, a cluster of two workers of which one is killed, and Spark Connect; needs pyspark and Java."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

pyspark = pytest.importorskip("pyspark", reason="pyspark, of the extra `spark`, is not installed")

from benchmarks.corpus import generate  # noqa: E402 - after the skip
from benchmarks.spark_cluster import free_port, kill, spark_cluster, wait_for  # noqa: E402 - as above
from sessionlog.engine import spark  # noqa: E402 - as above
from sessionlog.engine.spark import Spark  # noqa: E402 - as above
from sessionlog.engine.spark_session import open_session  # noqa: E402 - as above
from tests.engine.reports import documents  # noqa: E402 - as above
from tests.sources.homes import CASES, all_cases, build_home  # noqa: E402 - as above

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200), pytest.mark.filterwarnings("ignore::ResourceWarning")]

SPARK_CLASS = Path(pyspark.__file__).parent / "bin/spark-class"
REAL, CONFORMANCE = os.environ.get("SESSIONLOG_REAL", ""), os.environ.get("SESSIONLOG_CONFORMANCE", "")


@pytest.fixture(scope="module")
def local():
    """A Spark of two cores in this process."""
    with open_session("local[2]", None) as session:
        yield Spark(session=session)


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """The homes of all cases of all agents, in one folder."""
    folder = tmp_path_factory.mktemp("homes")
    for case in all_cases():
        build_home(case, folder / case)
    return str(folder)


def test_all_agents_together(local, homes):
    """Every report over the logs of every case: forks and copies across agents are matched in one shuffle."""
    assert documents([homes], engine=local) == documents([homes], jobs=1)


@pytest.mark.parametrize(
    "folder",
    [
        *(str(CASES.parent / name) for name in ("together", "usage", "routing", "reader", "fuzz")),
        pytest.param(REAL, marks=pytest.mark.skipif(not REAL, reason="$SESSIONLOG_REAL names no homes")),
        pytest.param(CONFORMANCE, marks=pytest.mark.skipif(not CONFORMANCE, reason="$SESSIONLOG_CONFORMANCE is unset")),
    ],
)
def test_other_logs(local, folder):
    """Requests on the wire, damage of every kind, what real clients left, recorded cases."""
    assert documents([folder], engine=local) == documents([folder], jobs=1)


def test_sums_that_might_overflow(local, tmp_path):
    """Counts near 64 bits, times beyond the calendar, latencies of years: such records are not summed on the cluster."""
    lines = [
        f'{{"session_id":"s","seq":{n},"type":"llm.response","ts":"{ts}","data":{{"model":"m","latency_ms":{latency},'
        f'"usage":{{"input":{2**62},"output":{2**63 - 1}}},"cost_usd":{cost}}}}}'
        for n, (ts, latency, cost) in enumerate(
            [("2026-11-20T12:00:00Z", 1e300, 1e9), ("9999-12-31T23:59:59Z", 5e14, 9e9), ("0001-01-01T00:00:00Z", 1, 0)]
            * 3
        )
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(lines) + "\n")
    assert documents([str(tmp_path)], engine=local) == documents([str(tmp_path)], jobs=1)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Forty megabytes of logs of our own in four hundred files, and every case of every agent."""
    folder = tmp_path_factory.mktemp("logs")
    generate(folder / "own", megabytes=40, files=400)
    for case in all_cases():
        build_home(case, folder / case)
    return str(folder)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A master and two workers on the loopback: (the master's URL, the workers)."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    with spark_cluster(tmp_path) as found:
        yield found


def test_a_worker_is_killed_in_the_job(cluster, logs, monkeypatch):
    """SIGKILL for one of two workers and its executor while logs are scanned: the reports are those of one machine."""
    url, workers = cluster
    expected = documents([logs], ["usage", "tools"], jobs=1)
    monkeypatch.setattr(spark, "_MOST", 1 << 20)
    monkeypatch.setattr(spark, "_LEAST", 1 << 20)
    done = []

    with open_session(url, None) as session:
        tracker = session.sparkContext.statusTracker()

        def kill_a_worker():
            def scanning():
                infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                return any(info is not None and info.numTasks > 20 and info.numCompletedTasks > 5 for info in infos)

            wait_for(scanning, seconds=300)
            kill(workers[0])
            done.append(True)

        killer = threading.Thread(target=kill_a_worker)
        killer.start()
        found = documents([logs], ["usage", "tools"], engine=Spark(session=session))
        killer.join()
    assert done == [True]
    assert found == expected


@contextmanager
def connect_server(tmp_path):
    """A server of Spark Connect on the loopback: its URL."""
    port = free_port()
    env = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [
        SPARK_CLASS.with_name("spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--master", "local[2]", "--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.ui.enabled=false",
        "spark-internal",
    ]  # fmt: skip
    with (tmp_path / "connect.log").open("wb") as messages:
        server = subprocess.Popen(
            command, stdout=messages, stderr=messages, env=env, start_new_session=True, cwd=tmp_path
        )
    try:
        wait_for(lambda: "Spark Connect server started" in (tmp_path / "connect.log").read_text())
        yield f"sc://127.0.0.1:{port}"
    finally:
        kill(server)


def test_spark_connect(homes, tmp_path):
    """The same through Spark Connect, which has no Java in this process; in a process of its own."""
    pytest.importorskip("grpc", reason="pyspark[connect] is not installed")
    script = (
        "import sys; from tests.engine.reports import documents; from sessionlog.engine.spark import Spark\n"
        "assert documents(sys.argv[1:2], engine=Spark(master=sys.argv[2])) == documents(sys.argv[1:2], jobs=1)"
    )
    names = {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"}
    env = {name: value for name, value in os.environ.items() if name not in names}
    env["PYTHONPATH"] = str(CASES.parents[1])
    with connect_server(tmp_path) as url:
        ran = subprocess.run([sys.executable, "-c", script, homes, url], env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]


def test_the_command_writes_nothing_else(homes):
    """What Spark writes to its error output does not reach the terminal; a session of its own ends with it."""
    command = [sys.executable, "-m", "sessionlog", "usage", homes, "--json", "--now", "2026-11-23T10:00:00Z"]
    options = {"capture_output": True, "text": True, "check": True, "cwd": CASES.parents[1]}
    one = subprocess.run(command, **options)
    many = subprocess.run([*command, "--engine", "spark", "--master", "local[2]"], **options)
    assert (many.stdout, many.stderr) == (one.stdout, one.stderr)
