"""Where an encoding lacks a sign of ours, one that looks alike stands in its cell."""

import ast
from pathlib import Path

import pytest

import sessionlog
from sessionlog.render.look_alikes import ERRORS

PACKAGE = Path(sessionlog.__file__).parent
RENDERERS = [*PACKAGE.glob("render/**/*.py"), *PACKAGE.glob("cli/**/*.py")]
FOREIGN = {PACKAGE / "render" / name for name in ("escape.py", "look_alikes.py", "currency.py")}
"""What these name comes from logs, or from the user."""
INVISIBLE = "\x7f\u200c\u200d"


def signs_of(path):
    """What is not ASCII in a module's texts, docstrings apart."""
    tree = ast.parse(path.read_text("utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs]
    return {sign for text in texts if isinstance(text, str) for sign in text if not sign.isascii()} - {*INVISIBLE}


@pytest.mark.parametrize("path", [path for path in RENDERERS if path not in FOREIGN], ids=lambda path: path.stem)
def test_every_sign_of_ours_has_one(path):
    """One cell of ASCII, and no question mark."""
    for sign in signs_of(path):
        text = sign.encode("ascii", ERRORS).decode()
        assert (len(text), text == "?") == (1, False), (sign, hex(ord(sign)))


def test_what_is_not_ours_is_a_question_mark():
    """Letters that are not there cannot be guessed; nor can half a character."""
    assert "é中\ud800 ok".encode("ascii", ERRORS) == b"??? ok"
    assert "–é".encode("latin-1", ERRORS) == b"-\xe9"


def test_bytes_that_are_no_text_are_still_an_error():
    """It is a handler for writing alone."""
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", ERRORS)
