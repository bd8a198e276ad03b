"""Logs of tests are small: scans of them go on where they ended all the same."""

import pytest


@pytest.fixture(autouse=True)
def _small_logs_go_on(monkeypatch):
    monkeypatch.setattr("sessionlog.ledger.sync.SMALL_LOG", 0)
