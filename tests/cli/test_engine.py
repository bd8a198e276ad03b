"""Reports on a cluster: `--engine spark` prints what one machine prints, and options that contradict it are named."""

import json

import pytest

from tests.engine import cluster
from tests.sources.homes import CASES


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--engine", "ray"], "there is no engine 'ray'; there is spark"),
        (["--master", "local"], "--master is where Spark runs: it needs --engine spark"),
        (["--engine", "spark", "--jobs", "2"], "choose only one of --engine and --jobs"),
        (["--engine", "spark", "--ledger", "x.db"], "choose only one of --engine and --ledger"),
    ],
)
def test_options_that_do_not_go_together(cli, options, sentence):
    """End the command before anything is read."""
    ran = cli("usage", *options)
    assert (ran.code, ran.err) == (2, f"sessionlog: {sentence}\n")


def test_the_command_prints_what_one_machine_prints(cli, monkeypatch):
    """`sessionlog usage PATH --engine spark`."""
    path = str(CASES.parent / "together")
    expected = cli("usage", path, "--json")
    cluster.use(monkeypatch)
    assert json.loads(cli("usage", path, "--json", "--engine", "spark").out) == expected.json
