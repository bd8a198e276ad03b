"""The project uses the field's language: none of its own verbs is left in names, docstrings, comments, messages and docs."""

import re
import tokenize
from pathlib import Path

import pytest

import sessionlog

PACKAGE = Path(sessionlog.__file__).parent
DIALECT = frozenset(
    {
        "tell", "tells", "told", "telling", "untold", "retold", "hear", "hears", "heard", "hearing", "hearsay", "say",
        "says", "said", "saying", "settle", "settles", "settled", "settling", "nobody", "nobodys", "somebody",
        "somebodys",
    }
)  # fmt: skip
"""Verbs that have a plain one: read, parse, write, show, report, return, compute, reconcile, finish; `nobody` is `none`."""

FOREIGN = re.compile(r"""\.tell\(|SettleMint|\bsettled\b|"said(_percent)?":""")
"""Names that are not to be chosen: a method of files, a vendor, a column of the ledger's file, and keys of JSON documents
that programs read."""

OLD_TABLES = PACKAGE / "ledger/tables.py"
"""It names what the ledger's first version called its tables and columns."""


PROJECT = PACKAGE.parent
DOCS = (
    *sorted((PROJECT / "docs").rglob("*.md")),
    *(PROJECT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")),
)


def words_of(path):
    """Every word of a module or page, whatever it stands in: names in parts, texts in words."""
    with tokenize.open(path) as file:
        for number, line in enumerate(file, start=1):
            for word in re.findall(r"[A-Z]+(?![a-z])|[A-Za-z][a-z]*", FOREIGN.sub(" ", line).replace("'s", "s")):
                yield number, word.lower()


def test_no_word_of_our_own_is_left():
    """A stranger reads it with a textbook's vocabulary."""
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {word}"
        for path in sorted({*PACKAGE.rglob("*.py")} - {OLD_TABLES})
        for number, word in words_of(path)
        if word in DIALECT
    ]
    assert found == []


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_no_page_has_a_word_of_our_own(page):
    """Programs do not speak: they report, print, name, mark or return."""
    assert [f"{number}: {word}" for number, word in words_of(page) if word in DIALECT] == []
