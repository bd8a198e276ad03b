"""The interrupt of `codex exec`: only a parent that runs this program gets it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARENT = """
import os, subprocess, sys
if "updated" in sys.argv:
    os.unlink(os.readlink("/proc/self/exe"))
try:
    code = "from sessionlog.guard.interrupt import interrupt_codex_run as run; print(run(), flush=True); input()"
    subprocess.run([sys.argv[-1], "-c", code], stdin=subprocess.PIPE)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the parent is found by /proc")
@pytest.mark.parametrize(
    ("program", "words", "found"),
    [
        ("codex", ["exec"], "True\ninterrupted\n"), ("codex", ["run", "exec"], "True\ninterrupted\n"),
        ("codex", ["exec", "updated"], "True\ninterrupted\n"),
        ("codex", ["run"], "False\n"), ("other", ["exec"], "False\n"),
    ],
)  # fmt: skip
def test_only_a_run_of_codex_is_interrupted(program, words, found, tmp_path):
    """The terminal program and other programs are left alone."""
    base = shutil.copy(os.path.realpath(sys.executable), tmp_path / program)
    for name in ("exec", "run"):
        (tmp_path / name).write_text(PARENT)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHOME": sys.base_prefix}
    ended = subprocess.run(
        [base, *words, sys.executable], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, timeout=30, text=True,
    )  # fmt: skip
    assert ended.stdout == found
