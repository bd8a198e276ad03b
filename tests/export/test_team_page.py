"""docs/team.md cannot rot: its statements run on the exports of two machines, and count what these have."""

import configparser
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("duckdb")

from tests.export.machines import counted
from tests.export.test_parquet import add_log, make_machine

PAGE = (Path(__file__).parents[2] / "docs" / "team.md").read_text("utf-8")
DAYS, COSTS, TEXTS = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def team(tmp_path):
    """A folder with the exports of two machines."""
    for name, project in (("a", "/w/api"), ("b", "/w/site")):
        machine = make_machine(tmp_path, name)
        add_log(machine, name, project=project)
        machine.export()
    with counted(tmp_path / "team") as connection:
        yield connection


def test_the_sums_are_those_of_the_machines(team):
    """Cost per day and per team add up to the requests of both machines."""
    cost, count = team.execute(
        "SELECT sum(coalesce(recorded_nano_usd, estimated_nano_usd)) / 1e9, sum(requests) FROM requests"
    ).fetchone()
    days = team.execute(DAYS).fetchall()
    assert (sum(row[1] for row in days), sum(row[2] for row in days)) == (count, pytest.approx(cost))
    mapping, sums = COSTS.split(";\n", 1)
    team.execute(mapping)
    assert [(row[0], row[4]) for row in team.execute(sums).fetchall()] == [("platform", pytest.approx(cost))]


def test_the_texts_are_names_alone(team):
    """The check of what leaves a machine lists projects and models, and nothing that was said."""
    values = {value for _, value, _ in team.execute(TEXTS).fetchall()}
    assert {"/w/api", "/w/site", "claude-opus-4-5"} <= values
    assert not any("secret" in value for value in values)


def test_the_check_has_every_text_column(team):
    """No column with text is left out of it, but those that name the machine."""
    columns = {name for name, kind, *_ in team.execute("DESCRIBE requests").fetchall() if kind.startswith("VARCHAR")}
    assert columns - set(re.findall(r"\w+", TEXTS)) <= {"machine_id", "month", "machine"}


def test_settings_and_timer_are_well_formed():
    """The JSON is JSON, and the units have the sections of systemd."""
    [settings] = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert json.loads(settings) == {"cleanupPeriodDays": 90}
    [units] = re.findall(r"^```ini\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    parser = configparser.ConfigParser()
    parser.read_string(units)
    assert parser.sections() == ["Service", "Timer", "Install"]
