"""A Spark cluster on the loopback: a master and workers, each a process group that can be killed with its executors."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def spark_cluster(
    folder: Path, *, workers: int = 2, memory: str = "1g"
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Yield the master's URL and the workers of one core each; their messages and work are in `folder`.

    Raises:
        TimeoutError: The workers have not registered in time.
    """
    import pyspark

    spark_class = Path(pyspark.__file__).parent / "bin/spark-class"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {"SPARK_LOG_DIR": str(folder), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    url = f"spark://127.0.0.1:{free_port()}"
    started: list[subprocess.Popen[bytes]] = []

    def start(role: str, *options: str) -> subprocess.Popen[bytes]:
        command = [spark_class, f"org.apache.spark.deploy.{role}", *options, "--host", "127.0.0.1", "--webui-port", "0"]
        with (folder / f"{len(started)}.log").open("wb") as messages:
            process = subprocess.Popen(
                command, stdout=messages, stderr=messages, env=env, start_new_session=True, cwd=folder
            )
        started.append(process)
        return process

    try:
        start("master.Master", "--port", url.rpartition(":")[2])
        found = [
            start("worker.Worker", url, "--cores", "1", "--memory", memory, "--work-dir", str(folder))
            for _ in range(workers)
        ]
        logs = [folder / f"{number}.log" for number in range(1, workers + 1)]
        wait_for(lambda: all("Successfully registered" in log.read_text() for log in logs))
        yield url, found
    finally:
        for process in started:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port() -> int:
    """Return a port of the loopback that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


def wait_for(condition: Callable[[], bool], seconds: float = 90) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: It did not hold in time.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds:g} s")
        time.sleep(0.2)
