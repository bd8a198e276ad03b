"""What a client does not log is proved by the bytes that it left."""

import re
from collections.abc import Iterator

import pytest

from tests.real.data import load_home, needs_homes
from tests.real.deviations import unlogged


def _cases() -> Iterator[object]:
    for home, deviation in unlogged():
        yield pytest.param(home, deviation, id=f"{home}-{'-'.join(deviation.checks or ('unread',))}")


@needs_homes()
@pytest.mark.parametrize(("home", "deviation"), list(_cases()) or [pytest.param("", None, id="no-homes")])
def test_what_is_not_in_the_log(home, deviation):
    """No file of the home holds what the table says that it does not hold."""
    absent = re.compile(deviation.absent.encode(), re.DOTALL)
    logs = [path for path in load_home(home).logs() if path.match(deviation.logs)]
    assert logs
    assert [path.name for path in logs if absent.search(path.read_bytes())] == []
