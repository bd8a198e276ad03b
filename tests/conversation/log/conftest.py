"""A folder of sessions, and what is remembered of them."""

import pytest

from sessionlog.conversation.log.logged_session import find_logged_session


@pytest.fixture
def folder(tmp_path):
    """A folder of sessions."""
    made = tmp_path / "sessions"
    made.mkdir()
    return made


@pytest.fixture
def read(folder):
    """Remembers a session of the folder, and nothing of the machine."""

    def remembered(target="s", **more):
        env = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
        return find_logged_session(target, directory=folder, env=env, **more)

    return remembered
