"""Summary: what a ledger holds, and what it alone remembers."""

import json
import os

import pytest

from sessionlog.analytics.ledger_report import LedgerReport
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.schema import VERSION
from sessionlog.ledger.summary import summarise_ledger
from tests.ledger.aged_home import AgedHome


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with a past; no test changes it."""
    return AgedHome(tmp_path_factory.mktemp("aged"))


def test_numbers_are_those_of_the_tables(home):
    """Together and by agent."""
    found = summarise_ledger(home.ledger)
    [(files, gone)] = home.ask("SELECT COUNT(*), SUM(missing = 1) FROM files")
    assert (found.exists, found.total.files, found.total.archived_files) == (True, files, gone)
    assert gone == len(home.gone) == 2
    assert [(found.total.records,)] == home.ask("SELECT COUNT(*) FROM responses WHERE counts")
    assert [(found.tool_calls,)] == home.ask("SELECT COUNT(*) FROM calls WHERE counts")
    assert [(found.oldest_ns, found.newest_ns)] == home.ask("SELECT MIN(time_ns), MAX(time_ns) FROM records")
    assert [one.source for one in found.sources] == ["claude-code", "codex", "native"]
    assert 0 < found.total.archived_records < found.total.records
    assert found.total.archived_records == sum(one.archived_records for one in found.sources)


def test_its_size_is_that_of_all_its_files(home):
    """What is in the write-ahead log belongs to it."""
    assert summarise_ledger(home.ledger).bytes >= os.path.getsize(home.ledger)


def test_the_last_sync_has_a_time(home):
    """It is later than everything in the logs."""
    found = summarise_ledger(home.ledger)
    assert found.synced_ns > found.newest_ns
    assert found.priced_from == "own prices, else the house's list of 2026-11-01"


def test_the_document_is_json(home):
    """`sessionlog.ledger/2`."""
    document = json.loads(json.dumps(LedgerReport.of(summarise_ledger(home.ledger)).to_dict()))
    assert (document["schema"], document["version"], document["path"]) == ("sessionlog.ledger/2", VERSION, home.ledger)
    assert document["totals"]["files"] == sum(one["files"] for one in document["rows"])
    assert document["oldest"].endswith("Z")


def test_none_is_none(tmp_path):
    """Looking makes nothing."""
    found = summarise_ledger(str(tmp_path / "ledger.sqlite"))
    assert (found.exists, found.total.files, LedgerReport.of(found).to_dict()["oldest"]) == (False, 0, None)
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_no_ledger_is_an_error(tmp_path):
    """Whatever it is."""
    (tmp_path / "odd").write_bytes(b"no database at all" * 400)
    with pytest.raises(LedgerUnusable, match="odd: file is not a database"):
        summarise_ledger(str(tmp_path / "odd"))
