"""The exception tree, and problems, which are values."""

import pytest

from sessionlog import errors
from sessionlog.errors import AmbiguousSession, LogNotReadable, Problem, SessionLogError

BUILTINS = {
    "InvalidSessionId": ValueError,
    "InvalidWindow": ValueError,
    "InvalidPrices": ValueError,
    "InvalidQuery": ValueError,
    "InvalidSettings": ValueError,
    "LogNotReadable": OSError,
    "LogLocked": LogNotReadable,
    "AmbiguousSession": LookupError,
    "LedgerUnusable": OSError,
    "GitFailed": OSError,
    "NotRecorded": OSError,
    "NotExported": OSError,
    "InvalidHistory": ValueError,
    "MissingField": KeyError,
    "AgentError": RuntimeError,
    "StaleSession": RuntimeError,
    "ReplayMiss": AssertionError,
    "SessionNotSaved": OSError,
    "EngineFailed": RuntimeError,
    "MissingExtra": ImportError,
}


@pytest.mark.parametrize(("name", "builtin"), BUILTINS.items())
def test_every_error_is_ours_and_pythons(name, builtin):
    """A caller may catch the tree or the builtin."""
    error = getattr(errors, name)
    assert issubclass(error, SessionLogError)
    assert issubclass(error, builtin)


def test_the_tree_is_drawn_whole():
    """The module's docstring shows every error there is, and no other."""
    ours = {cls.__name__ for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, SessionLogError)}
    assert ours == {*BUILTINS, "SessionLogError"}
    assert all(name in errors.__doc__ for name in ours)


def test_an_ambiguous_session_names_the_candidates():
    """All are kept; the message shows the first, how many there are beside them, and where all are."""
    error = AmbiguousSession("2026", tuple(f"2026-{n}" for n in range(20)))
    assert len(error.candidates) == 20
    assert str(error).startswith("'2026' names 20 sessions: 2026-0, 2026-1")
    assert "2026-9" not in str(error)
    assert str(error).endswith("2026-7 and 12 more; `sessionlog sessions` lists them")


@pytest.mark.parametrize(
    ("line", "text"), [(17, "s.jsonl:17 not_json 5 bytes are not JSON"), (0, "s.jsonl not_json 5 bytes are not JSON")]
)
def test_a_problem_names_its_place(line, text):
    """File and line, kind, detail; without a line the whole file is meant."""
    assert str(Problem(path="s.jsonl", line=line, offset=9, kind="not_json", detail="5 bytes are not JSON")) == text


def test_a_missing_field_says_what_it_says():
    """A KeyError would put its message in quotes."""
    assert str(errors.MissingField("messages[3]: no 'role'")) == "messages[3]: no 'role'"


def test_a_problem_without_words():
    """Its kind is enough."""
    assert str(Problem(path="s.jsonl", line=1, offset=0, kind="too_long", detail="")) == "s.jsonl:1 too_long"
