"""What these tests share: a place outside anybody's settings."""

import pytest


@pytest.fixture
def outside(monkeypatch, tmp_path):
    """No configuration, no terminal, UTC: the answer depends on the command line alone."""
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    for variable in ("SESSIONLOG_DIR", "SESSIONLOG_CONFIG", "PAGER", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SESSIONLOG_TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("TERM", "dumb")
