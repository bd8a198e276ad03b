"""Clauses recognise names as genai-prices does."""

import pytest

from sessionlog.pricing.matching import matches, names_exactly

LIKE_O3 = {"or": [{"equals": "o3"}, {"and": [{"starts_with": "o3-"}, {"ends_with": "-pro"}]}]}


@pytest.mark.parametrize(
    ("clause", "name", "expected"),
    [
        ({"equals": "o3"}, "o3", True),
        ({"equals": "o3"}, "o3-mini", False),
        ({"starts_with": "o3"}, "o3-mini", True),
        ({"starts_with": "o3"}, "pro-o3", False),
        ({"ends_with": "-pro"}, "o3-pro", True),
        ({"ends_with": "-pro"}, "-pro-x", False),
        ({"contains": "claude"}, "us.claude-2", True),
        ({"contains": "claude"}, "gpt", False),
        ({"regex": "^o[134]"}, "o4-mini", True),
        ({"regex": "^o[134]"}, "gpt-o4", False),
        (LIKE_O3, "o3", True),
        (LIKE_O3, "o3-pro", True),
        (LIKE_O3, "o3-mini", False),
    ],
)
def test_each_kind_of_clause(clause, name, expected):
    """Every kind of clause accepts what it describes and nothing else."""
    assert matches(clause, name) is expected


def test_an_unknown_clause_is_named():
    """A list from a later version is refused by name instead of matching nothing."""
    with pytest.raises(ValueError, match="'glob' is newer"):
        matches({"glob": "x"}, "x")


def test_only_equality_names_exactly():
    """A name is literal where an `equals` says so, alone or as one choice of several."""
    assert names_exactly(LIKE_O3, "o3")
    assert not names_exactly(LIKE_O3, "o3-pro")
    assert not names_exactly({"starts_with": "o3"}, "o3")
    assert not names_exactly({"and": [{"equals": "o3"}]}, "o3")
