"""Names of pages: each session its own, the same in every run where its id allows that."""

import pytest

from sessionlog.cli.pages import file_name, free_name

ALIKE = ["a-b", "a:b", "a?b", "a*b", 'a"b', "a b", "a/b", "-a-b", "a-b.", "a" * 100, "a" * 101, "", ".", "..", "\ud800"]


def test_a_plain_id_is_the_name():
    """As our own ids and those of agents are."""
    for session in ("20261120T100000Z-0123abcd", "019aa5f3-7c00-7000-8000-00000000c0de", "ses_2"):
        assert file_name(session) == f"{session}.html"


def test_ids_that_a_name_cannot_have_have_different_names():
    """Those of other runs included: each name depends on its id alone."""
    names = [file_name(session) for session in ALIKE]
    assert len(set(names)) == len(ALIKE)
    assert not [name for name in names if set(name) & set('/\\:?*" <>|') or len(name) > 130 or name[0] in ".-"]


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ([], "x.html"),
        (["y.html"], "x.html"),
        (["X.html"], "codex-x.html"),
        (["x.html", "Codex-X.html"], "2-codex-x.html"),
        (["x.html", "codex-x.html", "2-codex-x.html"], "3-codex-x.html"),
    ],
)
def test_a_name_beside_others_is_free(taken, expected):
    """With the agent, and with a number if that is taken, too."""
    assert free_name("x.html", "codex", taken) == expected
