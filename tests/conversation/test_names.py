"""The room's public names: all that are promised are there, and are loaded when they are used."""

import subprocess
import sys

import sessionlog
from sessionlog import conversation


def test_every_name_is_there():
    """Importable, each once, and nothing else looks public."""
    assert len(set(conversation.__all__)) == len(conversation.__all__)
    assert {name for name in conversation.__all__ if not hasattr(conversation, name)} == set()
    assert set(dir(conversation)) == set(conversation.__all__)


def test_an_unknown_name_is_an_attribute_error():
    """As of any module."""
    assert not hasattr(conversation, "nothing")
    assert not hasattr(sessionlog, "nothing")


def test_the_top_level_has_them_too():
    """Whoever knows only `sessionlog` finds a session there."""
    classes = [name for name in conversation.__all__ if name[0].isupper()]
    assert [name for name in classes if getattr(sessionlog, name, None) is not getattr(conversation, name)] == []


def test_importing_the_room_loads_none_of_it():
    """A message costs no session's machinery, and a session without failures no retries; nobody's client is imported."""
    code = (
        "import sys; from sessionlog.conversation import Message, Conversation; Message.user('hi');"
        "assert 'sessionlog.conversation.session' not in sys.modules;"
        "from sessionlog.conversation import Session; Session(lambda messages: 'hello').run('hi');"
        "heavy = {'rich', 'pydantic', 'pydantic_ai', 'openai', 'anthropic', 'sqlite3'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""
