"""The room's public names: all that are promised are there, and are loaded when they are used."""

import subprocess
import sys

from sessionlog import context


def test_every_name_is_there():
    """Importable, each once, and nothing else looks public."""
    assert len(set(context.__all__)) == len(context.__all__)
    assert {name for name in context.__all__ if not hasattr(context, name)} == set()
    assert set(dir(context)) == set(context.__all__)


def test_an_unknown_name_is_an_attribute_error():
    """As of any module."""
    assert not hasattr(context, "nothing")


def test_importing_the_room_loads_none_of_it():
    """A window's look-up costs no agent's machinery; a snapshot costs no rich."""
    code = (
        "import sys; from sessionlog.context import get_model_context_window as w; w('gpt-4o');"
        "assert 'sessionlog.context.snapshots.extract' not in sys.modules;"
        "from sessionlog.context import extract_context_snapshot as e; e();"
        "assert not {'rich', 'pydantic_ai', 'pydantic', 'sqlite3'} & set(sys.modules), sorted(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""
