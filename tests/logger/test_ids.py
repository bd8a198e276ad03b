"""Session ids: a name that stays in its folder on every file system."""

import os
import re
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import InvalidSessionId
from sessionlog.logger.ids import check_session_id, new_session_id
from sessionlog.logger.session_logger import SessionLogger
from tests.profiles import examples

ALPHABET = st.sampled_from("aZ09._-/\\:*\0\n é..~%$ \u202e")
WORDS = st.sampled_from(["..", "con", "NUL", "COM1", "lpt9", ".jsonl", ".JSONL.gz", ".zst", "s-1", "/", "a"])


@pytest.mark.parametrize(
    "session_id",
    [
        "a",
        "0",
        "s-42",
        "20261121T100000Z-0a1b2c3d",
        "svc-1777784409319258737",
        "A.b_c-D",
        "x" * 128,
        "console",
        "com10",
        "nul-1",
        "notes.jsonl.old",
        "jsonl",
        "a.gz",
    ],
)
def test_p12_accepted_ids(session_id):
    """Letters, digits, dots, lines and underscores, up to 128, beginning with a letter or digit."""
    assert check_session_id(session_id) == session_id


@pytest.mark.parametrize(
    "session_id",
    [
        "",
        ".",
        "..",
        "../escaped",
        "a/b",
        "a\\b",
        "/etc/passwd",
        "C:evil",
        "a..b",
        "a.",
        ".hidden",
        "-rf",
        "_x",
        "a b",
        "a\n",
        "a\0b",
        "é",
        "ａ",
        "\ud800",
        "٣",
        "a\u202eb",
        "x" * 129,
        "con",
        "CON",
        "con.txt",
        "NUL.jsonl",
        "aux",
        "com1",
        "LPT9.log",
        "s.jsonl",
        "s.jsonl.gz",
        "s.JSONL.ZST",
        None,
        5,
        b"bytes",
        ["list"],
    ],
)
def test_p12_refused_ids(session_id):
    """Whatever could leave the folder, hide, hang a device or be read as an option."""
    with pytest.raises(InvalidSessionId, match="session id"):
        check_session_id(session_id)


def test_a_refused_id_is_a_value_error_before_anything_is_made(tmp_path):
    """The constructor raises, and no folder or file appears."""
    with pytest.raises(ValueError):
        SessionLogger(tmp_path / "logs", "../escaped")
    assert os.listdir(tmp_path) == []


def test_a_long_refused_id_is_shown_shortly():
    """The message does not repeat a megabyte."""
    with pytest.raises(InvalidSessionId) as caught:
        check_session_id("é" * 100_000)
    assert len(str(caught.value)) < 300


@examples(300)
@given(session_id=st.text(ALPHABET, max_size=12) | st.text(max_size=8) | st.lists(WORDS, max_size=4).map("".join))
def test_p12_an_accepted_id_stays_in_its_folder(session_id):
    """Every id is refused, or names a file directly inside the folder, under its own name."""
    try:
        check_session_id(session_id)
    except InvalidSessionId:
        return
    with tempfile.TemporaryDirectory() as root:
        folder = os.path.join(root, "logs")
        os.mkdir(folder)
        logger = SessionLogger(folder, session_id)
        assert logger.emit("x")
        logger.close()
        assert os.listdir(root) == ["logs"]
        assert os.listdir(folder) == [f"{session_id}.jsonl"]
        assert os.path.dirname(logger.path) == folder


def test_new_ids_sort_by_time():
    """An id is the second in UTC and eight random digits."""
    assert new_session_id(1_795_255_200_999_999_999, lambda count: b"\x0a\x1b\x2c\x3d"[:count]) == (
        "20261121T100000Z-0a1b2c3d"
    )


def test_a_logger_makes_its_own_id(tmp_path):
    """Without an id each logger has another one, which it would accept itself."""
    ids = {SessionLogger(tmp_path).session_id for _ in range(20)}
    assert len(ids) == 20
    assert all(re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{8}", check_session_id(one)) for one in ids)


def test_p12_an_id_that_differs_in_case_only_is_refused(tmp_path):
    """On some file systems it would be the same file: nothing is written over, and the drop is counted."""
    with SessionLogger(tmp_path, "Session-A"):
        pass
    said = []
    other = SessionLogger(tmp_path, "session-a", notify=said.append)
    assert other.emit("x") is False
    assert other.health().dropped == 1
    assert "differs from Session-A.jsonl in case only" in said[0]
    assert os.listdir(tmp_path) == ["Session-A.jsonl"]
