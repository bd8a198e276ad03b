"""The page on clusters: its Python runs, on a process pool, on Dask and on Spark, and all count the same."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.security.commands import STORY

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/spark.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
DASK = """
from dask.distributed import LocalCluster
cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
"""


def run(word, tmp_path, before=""):
    """Run the block with a word over two sessions; returns what it prints."""
    [block] = [one for one in BLOCKS if word in one]
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(Path(STORY).read_bytes())
    code = block.replace("/shared/logs", str(tmp_path)).replace('"tcp://scheduler:8786"', "cluster")
    body = "\n".join(f"    {line}" for line in f"{before}{code}".splitlines())
    script = tmp_path / "script.py"  # workers that are started anew import it
    script.write_text(f'if __name__ == "__main__":\n{body}\n')
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout


def test_a_process_pool(tmp_path):
    """Any executor of concurrent.futures."""
    assert run("ProcessPoolExecutor", tmp_path) == "10 requests\n"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_dask(tmp_path):
    """Its executor, on two workers of this machine."""
    pytest.importorskip("distributed", reason="dask[distributed] is not installed")
    assert run("dask", tmp_path, DASK) == "10 requests\n"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_spark(tmp_path):
    """The engine, started for the report."""
    pytest.importorskip("pyspark", reason="pyspark, of the extra `spark`, is not installed")
    assert run("Spark(master", tmp_path).startswith("10 requests, ")


def test_every_block_is_run():
    """There is no other one on the page."""
    assert len(BLOCKS) == 3
