"""Homes of agents, built from testdata/sources: each case a folder with one lesson and the truth beside it.

Databases are kept as SQL (`x.db.sql` becomes `x.db`) and packed logs unpacked (`x.jsonl.zst.plain` becomes
`x.jsonl.zst`), so that every byte of a fixture can be read.
"""

import gzip
import json
import os
import shutil
import sqlite3
from pathlib import Path

CASES = Path(__file__).parents[2] / "testdata" / "sources"
LONG_AGO = 1_700_000_000
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where logs are written that a disk would be waited for; None for wherever temporary files are."""


def all_cases():
    """`agent/case` of every case."""
    return sorted(str(path.parent.relative_to(CASES)) for path in CASES.glob("*/*/truth.json"))


def cases_of(source):
    """The cases of one agent."""
    return [case for case in all_cases() if case.startswith(f"{source}/")]


def build_home(case, folder):
    """Make the home of a case inside a folder; returns its path."""
    home = Path(folder) / "home"
    shutil.copytree(CASES / case / "home", home)
    for path in sorted(home.rglob("*.sql")):
        connection = sqlite3.connect(path.with_suffix(""))
        connection.executescript(path.read_text("utf-8"))
        connection.commit()
        connection.close()
        path.unlink()
    for path in sorted(home.rglob("*.plain")):
        packed = path.with_suffix("")
        packed.write_bytes(_pack(packed.suffix, path.read_bytes()))
        path.unlink()
    for path in home.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    return home


def _pack(suffix, content):
    if suffix == ".gz":
        return gzip.compress(content, mtime=0)
    try:
        from compression import zstd
    except ImportError:
        from backports import zstd
    return zstd.compress(content)


def truth_of(case):
    """What its author says that it amounts to."""
    return json.loads((CASES / case / "truth.json").read_text("utf-8"))


def environment(case, home):
    """The environment in which the agent wrote."""
    given = truth_of(case).get("env", {})
    return {"HOME": str(home), **{name: value.replace("{home}", str(home)) for name, value in given.items()}}
