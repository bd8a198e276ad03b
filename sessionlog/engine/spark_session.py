"""Sessions of Spark: start or find one, give its workers this package, and explain its failures in a sentence.

Workers need Python with msgspec and orjson; sessionlog itself is sent to them as an archive. What a Spark that is
started here writes to its error output goes to a file, not to the terminal.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zipfile import ZIP_DEFLATED, ZipFile

from sessionlog import files
from sessionlog.errors import EngineFailed, MissingExtra, SessionLogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sessionlog.ledger.sync import Progress

_T = TypeVar("_T")

_SHIPPED = "spark.sessionlog.shipped"
"""The setting of a session that has the name of the archive that its workers have."""

_CONNECT = "sc://"
_TICK = 0.25  # seconds between two looks at the progress
_PATIENCE = 30  # seconds for the end of a session
_PYTHON = "PYSPARK_PYTHON"
_LONGEST = 300
"""Characters of a failure that are shown."""


def import_session() -> Any:
    """Return pyspark's class of sessions.

    Raises:
        MissingExtra: pyspark is not installed.
    """
    try:
        from pyspark.sql import SparkSession as Sessions
    except ImportError as error:
        raise MissingExtra("Spark needs: pip install 'sessionlog[spark]'") from error
    return Sessions


@contextmanager
def open_session(master: str | None, session: SparkSession | None) -> Iterator[SparkSession]:
    """Yield a session whose workers have this package; one that is started here ends with the context.

    Args:
        master: See `spark.Spark`.
        session: A session to use; it stays open.

    Raises:
        MissingExtra: pyspark is not installed.
        EngineFailed: Spark cannot be started or reached.
    """
    sessions = import_session()
    found = session or sessions.getActiveSession()
    spark = found or _connect(sessions, master) or _start(master)
    try:
        _ship(spark)
        yield spark
    finally:
        if found is None:
            _stop(spark)


def _connect(sessions: Any, master: str | None) -> SparkSession | None:
    """Return a session of Spark Connect; None if the master is another."""
    if master is None or not master.startswith(_CONNECT):
        return None
    try:
        session: SparkSession = sessions.builder.remote(master).getOrCreate()
    except ImportError as error:
        raise MissingExtra(f"{master} is Spark Connect, which needs: pip install 'pyspark[connect]'") from error
    return session


def _stop(spark: SparkSession) -> None:
    """End a session; in a thread, which has a connection to Java of its own, as an interrupt breaks this one's."""

    def stop() -> None:
        with suppress(Exception):  # a cluster that is gone is no reason to fail at the end
            spark.stop()

    stopping = threading.Thread(target=stop, name="sessionlog-spark-stop", daemon=True)
    stopping.start()
    stopping.join(_PATIENCE)


def _start(master: str | None) -> SparkSession:
    """Start Spark with its messages in a file; workers on this machine run this Python."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession as Sessions

    conf = SparkConf().setAppName("sessionlog").set("spark.ui.showConsoleProgress", "false")
    if master is not None:
        conf.setMaster(master)
    conf.setIfMissing("spark.master", "local[*]")
    if str(conf.get("spark.master")).startswith("local"):
        conf.setIfMissing("spark.ui.enabled", "false")
    messages, _ = files.open_temporary()
    given = os.environ.get(_PYTHON)
    os.environ.setdefault(_PYTHON, sys.executable)
    try:
        gateway = launch_gateway(conf, popen_kwargs={"stdout": messages, "stderr": messages})
        try:
            return wait_for(lambda: Sessions(SparkContext(conf=conf, gateway=gateway)))
        except KeyboardInterrupt:
            gateway.proc.terminate()
            raise
    except Exception as error:
        raise EngineFailed(_why_not_started(messages, error)) from error
    finally:
        if given is None:
            del os.environ[_PYTHON]


def wait_for(function: Callable[[], _T]) -> _T:
    """Return what a long call of Spark returns, from a thread: an interrupt ends this wait, not the thread's call.

    An interrupted call would break the connection to Java, which ends the job then. Spark installs its own handler of
    interrupts, which calls Java, too, only if it is started in the main thread.
    """
    result: Future[_T] = Future()

    def call() -> None:
        try:
            result.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            result.set_exception(error)

    threading.Thread(target=call, name="sessionlog-spark", daemon=True).start()
    return result.result()


def _why_not_started(messages: Any, error: Exception) -> str:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=os.path.join(home, "bin") if home else None) is None:
        place = f"$JAVA_HOME ({home}) has no bin/java" if home else "no java was found"
        return f"Spark needs Java, 17 or newer, and {place}: install it, or set JAVA_HOME"
    messages.seek(0)
    written = [line for line in messages.read().decode("utf-8", "replace").splitlines() if " ERROR " in line]
    reason = written[-1].split(": ", 1)[-1] if written else first_line(error)
    return f"Spark cannot be started: {reason}"


def _ship(spark: SparkSession) -> None:
    """Send this package to the workers, once per session."""
    data = package_archive()
    name = f"sessionlog-{sha256(data).hexdigest()[:16]}.zip"
    if spark.conf.get(_SHIPPED, "") == name:
        return
    folder = files.temporary_directory("sessionlog-spark-")
    atexit.register(files.remove_directory, folder)  # a worker that starts later still fetches it
    path = os.path.join(folder, name)
    files.replace_file(path, [data])
    if is_connect(spark):
        spark.addArtifact(path, pyfile=True)
    else:
        spark.sparkContext.addPyFile(path)
    spark.conf.set(_SHIPPED, name)


def package_archive() -> bytes:
    """Return this package as a zip archive from which Python imports it, with its data."""
    package = Path(files.__file__).parents[1]
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(package.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                archive.write(path, os.path.join("sessionlog", path.relative_to(package)))
    return buffer.getvalue()


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, which has no Java in this process."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def parallelism(spark: SparkSession) -> int:
    """Return the number of tasks that run at once; a guess through Spark Connect, which does not know it."""
    return 8 if is_connect(spark) else max(1, spark.sparkContext.defaultParallelism)


@contextmanager
def failures_explained() -> Iterator[None]:
    """Turn what Spark raises into one sentence.

    Raises:
        EngineFailed: Spark has failed.
    """
    try:
        yield
    except SessionLogError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
            raise
        raise EngineFailed(f"the Spark job failed: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Return the line of a failure that has its reason; a worker's own exception is the last line of its trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    of_worker = [line for line in lines if line.startswith(("ModuleNotFoundError", "ImportError", "MemoryError"))]
    text = (of_worker or lines or [type(error).__name__])[0]
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


@contextmanager
def progress_of_tasks(spark: SparkSession | None, progress: Progress | None, total: int) -> Iterator[None]:
    """Call `progress` with (logs done, logs in all) while Spark works; without a session nothing is done yet."""
    if progress is None or not total:
        yield
        return
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_TICK):
            with suppress(Exception):
                progress(0 if spark is None else min(total - 1, int(total * _share_done(spark))), total)

    watching = threading.Thread(target=look, name="sessionlog-spark-progress", daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()
    if spark is not None:
        progress(total, total)


def _share_done(spark: SparkSession) -> float:
    """Return the share of tasks that are done, from 0 to 1; 0 where it is not known."""
    if is_connect(spark):
        return 0.0
    tracker = spark.sparkContext.statusTracker()
    stages = list(filter(None, map(tracker.getStageInfo, tracker.getActiveStageIds())))
    tasks = sum(stage.numTasks for stage in stages)
    return sum(stage.numCompletedTasks for stage in stages) / tasks if tasks else 0.0
