"""A status that is asked for again and again: its own logs are looked at every time, and the rest once a second."""

import os
import threading
from datetime import UTC, datetime

import pytest

from sessionlog.analytics.budgets.report import report_budgets
from sessionlog.analytics.budgets.rules import parse_budgets
from sessionlog.analytics.status.reader import StatusQuestion, StatusReader, session_status
from sessionlog.errors import InvalidSettings, LogNotReadable
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.pricing.book import PriceBook
from sessionlog.settings import load_settings
from sessionlog.testing import FixedClock
from tests.analytics.status.statuses import MODEL, NOW, alone, answer, write
from tests.ledger.entries import SECOND


@pytest.fixture
def agent(tmp_path):
    """A session that goes on, its environment, and the place where sessions are."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    log = SessionLogger(folder, "s-mine", clock=FixedClock("2026-11-20T10:00:00Z"), model=MODEL, provider="anthropic")
    answer(log)
    yield log, alone(tmp_path), folder
    log.close()


def requests(env, target="s-mine", **options):
    """How many it has by now."""
    return session_status(target, env=env, **options).usage["session"]["requests"]


def test_an_agent_sees_its_own_requests_at_once(agent):
    """Each is there as soon as it is in the log."""
    log, env, _ = agent
    for count in range(1, 5):
        assert requests(env) == count
        answer(log)


def test_a_status_that_is_still_true_is_given_again(agent, monkeypatch):
    """Nothing is asked of the ledger, and nothing is read."""
    _, env, _ = agent
    first = session_status("s-mine", env=env)
    monkeypatch.setattr("sessionlog.ledger.keep_open.KeptBook.ask", None)
    assert session_status("s-mine", env=env) is first


def test_only_what_was_appended_is_read(agent, monkeypatch):
    """The scan begins where the last one ended."""
    log, env, folder = agent
    assert requests(env) == 1
    size = (folder / "s-mine.jsonl").stat().st_size
    answer(log)
    begun = []

    def watched(job, *args):
        begun.append(job.resume and job.resume.offset)
        return original(job, *args)

    from sessionlog.ledger import scanning

    original = scanning.scan_job
    monkeypatch.setattr("sessionlog.ledger.sync.scan_job", watched)
    assert requests(env) == 2
    assert begun == [size]


def test_another_session_is_seen_after_a_second(agent):
    """Not before: an agent that asks after every step must not list a thousand logs each time."""
    _, env, folder = agent
    reader = StatusReader(env=env)
    assert reader.read(NOW).session["id"] == "s-mine"
    write(folder, "s-newer", start="2026-11-20T11:00:00Z")
    assert reader.read(NOW + SECOND // 2).session["id"] == "s-mine"
    assert reader.read(NOW + SECOND).session["id"] == "s-newer"
    reader.close()


def test_another_process_that_writes_to_the_ledger_is_noticed(agent):
    """What it read is not read again, and is in the answer."""
    log, env, _ = agent
    reader = StatusReader(question=StatusQuestion(target="s-mine"), env=env)
    assert reader.read(NOW).usage["session"]["requests"] == 1
    answer(log)
    assert requests(env) == 2
    assert reader.read(NOW).usage["session"]["requests"] == 2
    reader.close()


def test_the_present_can_be_given(agent):
    """A session without an end is running for ten minutes."""
    _, env, _ = agent
    moments = {
        "running": datetime(2026, 11, 20, 10, 5, tzinfo=UTC),
        "unfinished": datetime(2026, 11, 20, 11, tzinfo=UTC),
    }
    for state, moment in moments.items():
        assert session_status("s-mine", env=env, now=moment).session["status"] == state


def test_a_path_outside_all_places_is_read_by_itself(tmp_path):
    """The ledger does not learn of it, and nothing is said of other sessions; what is appended is seen."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    path = write(folder, "s-far")
    env = alone(tmp_path)
    found = session_status(path=path, env=env)
    assert found.session["id"] == "s-far"
    assert found.usage["today"] is None
    assert "read alone" in found.unavailable["usage.today"]
    assert not os.path.exists(tmp_path / "home/.local/share/sessionlog/ledger.sqlite")
    with SessionLogger(folder, "s-far", clock=FixedClock("2026-11-20T10:01:00Z")) as log:
        answer(log)
        assert session_status(path=path, env=env).usage["session"]["requests"] == 2


def test_budgets_are_not_asked_for_a_log_that_is_read_by_itself(tmp_path):
    """They are about the machine, and the status says so."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    env = alone(tmp_path)
    config = tmp_path / "home/.config/sessionlog/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[budgets.b]\nusd = 1\nperiod = "day"\n')
    found = session_status(path=write(folder, "s-far"), env=env)
    assert found.usage["budgets"] == {"hourly": None, "weekly": None}
    assert "about this machine" in found.unavailable["usage.budgets"]


def test_a_ledger_that_is_deleted_is_said_of_every_budget(agent, tmp_path):
    """What was used before is not known any more: the sentence is the one of `budget`."""
    log, env, _ = agent
    config = tmp_path / "home/.config/sessionlog/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[budgets.b]\ntokens = 10_000\nwindow = "7d"\n')
    ledger = tmp_path / "home/.local/share/sessionlog/ledger.sqlite"
    now = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
    rule = parse_budgets(load_settings(env).budgets)
    asked = {"env": env, "zone": "UTC", "now": now}
    assert report_budgets(str(ledger), rule, PriceBook.load(), **asked).unknown == []
    assert session_status(env=env, now=now).usage["budgets"]["b"]["left"] == 10_000 - 110
    for path in ledger.parent.iterdir():
        path.unlink()
    answer(log)
    found = session_status(env=dict(env), tz="UTC", now=now)
    entry = found.usage["budgets"]["b"]
    assert (entry["used"], entry["left"], entry["level"]) == (220, None, None)
    assert "deleted or replaced" in found.unavailable["usage.budgets.b"]
    assert entry["unknown"] == list(report_budgets(str(ledger), rule, PriceBook.load(), **asked).rows[0].caveats)


def test_a_path_of_the_ledger_is_asked_there(agent):
    """It knows the other sessions, too."""
    _, env, folder = agent
    assert session_status(path=folder / "s-mine.jsonl", env=env).usage["today"] is not None


def test_a_folder_is_asked_for_its_newest_session(agent):
    """Also one in which agents write."""
    log, env, folder = agent
    write(folder, "s-older", start="2026-11-20T09:00:00Z")
    assert session_status(path=folder, env=env).session["id"] == "s-mine"
    answer(log)
    assert session_status(path=folder, env=env).usage["session"]["requests"] == 2


def test_a_log_without_requests_is_a_status(agent):
    """Somebody has begun: there are zeros."""
    _, env, folder = agent
    with SessionLogger(folder, "s-bare", clock=FixedClock("2026-11-20T10:00:00Z"), model=MODEL) as log:
        log.emit("session.start", {})
        log.emit("session.end", {"status": "success"})
    found = session_status(path=folder / "s-bare.jsonl", env=env)
    assert (found.usage["session"]["requests"], found.usage["session"]["totalTokens"]) == (0, 0)


def test_a_log_without_a_session_is_an_error(agent):
    """It is there, and says nothing yet."""
    _, env, folder = agent
    (folder / "s-empty.jsonl").touch()
    with pytest.raises(LogNotReadable, match="no session in it; `sessionlog sessions` lists"):
        session_status(path=folder / "s-empty.jsonl", env=env)


def test_nothing_recorded_is_a_status(tmp_path):
    """Everything is null, and says why."""
    found = session_status(env=alone(tmp_path))
    assert found.session is found.context is None
    assert found.unavailable["session"] == "no session has been recorded yet"


def test_a_session_that_is_not_there_is_an_error(agent):
    """A status of another one would be taken for its own."""
    with pytest.raises(LogNotReadable, match=r"nobody: .*`sessionlog sessions` lists"):
        session_status("nobody", env=agent[1])


def test_a_ledger_that_cannot_be_used_is_not_needed(agent, tmp_path):
    """The logs are read into memory, and read on."""
    log, env, _ = agent
    broken = tmp_path / "ledger.sqlite"
    broken.write_bytes(b"nothing of the kind" * 400)
    assert requests(env, ledger=broken) == 1
    answer(log)
    assert requests(env, ledger=broken) == 2
    assert broken.read_bytes() == b"nothing of the kind" * 400


def test_settings_that_change_are_heard_within_a_second(agent, tmp_path):
    """Budgets come and go, and mistakes in them are named."""
    _, env, _ = agent
    config = tmp_path / "home/.config/sessionlog/config.toml"
    config.parent.mkdir(parents=True)
    reader = StatusReader(env=env)
    assert "b" not in reader.read(NOW).usage["budgets"]
    config.write_text('[budgets.b]\nusd = 1\nperiod = "day"\n')
    assert reader.read(NOW + SECOND).usage["budgets"]["b"]["limit"] == 1
    config.write_text("[budgets.b]\nusd = 1\n")
    found = reader.read(NOW + 2 * SECOND)
    assert found.usage["session"]["requests"] == 1
    assert found.unavailable["usage.budgets"].startswith(f"{config}: [budgets.b] needs exactly one")
    config.write_text("[budgets.b\n")
    with pytest.raises(InvalidSettings, match=r"config\.toml"):
        reader.read(NOW + 3 * SECOND)
    reader.close()


def test_threads_have_readers_of_their_own(agent):
    """A connection belongs to one of them."""
    _, env, _ = agent
    assert requests(env) == 1
    found = []
    thread = threading.Thread(target=lambda: found.append(requests(env)))
    thread.start()
    thread.join()
    assert found == [1]
