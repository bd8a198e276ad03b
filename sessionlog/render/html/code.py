"""Code: highlight a text in a programming language as spans of a few classes.

The language comes from the name that a log gives, among those below: a lexer that guesses reads a text many times.
"""

from __future__ import annotations

from functools import cache
from itertools import groupby
from typing import Any

from sessionlog.render.escape import html_text, terminal
from sessionlog.render.html.page import Html, join, tag

_LANGUAGES = {
    "bash": "bash", "c": "c", "cpp": "cpp", "cs": "csharp", "csharp": "csharp", "css": "css", "diff": "diff",
    "dockerfile": "docker", "go": "go", "h": "c", "html": "html", "ini": "ini", "java": "java",
    "javascript": "javascript", "js": "javascript", "json": "json", "jsx": "javascript", "kotlin": "kotlin",
    "kt": "kotlin", "lua": "lua", "makefile": "make", "patch": "diff", "php": "php", "py": "python",
    "python": "python", "rb": "ruby", "rs": "rust", "ruby": "ruby", "rust": "rust", "scala": "scala", "sh": "bash",
    "shell": "bash", "sql": "sql", "swift": "swift", "toml": "toml", "ts": "typescript", "tsx": "typescript",
    "typescript": "typescript", "xml": "xml", "yaml": "yaml", "yml": "yaml", "zsh": "bash",
}  # fmt: skip
"""A fence's name or a file's ending → the name of the lexer."""

_CLASSES = (
    ("Comment", "hc"), ("Keyword", "hk"), ("Literal.String", "hs"), ("Literal.Number", "hn"), ("Name.Function", "hf"),
    ("Name.Class", "hf"), ("Name.Builtin", "hb"), ("Name.Tag", "hk"), ("Name.Attribute", "hf"),
    ("Name.Decorator", "hf"), ("Operator.Word", "hk"), ("Generic.Deleted", "del"), ("Generic.Inserted", "ins"),
    ("Generic.Heading", "hc"), ("Generic.Subheading", "hc"),
)  # fmt: skip
_LONGEST = 20_000
"""Characters; longer texts are shown without colours, as are those with a line of more than `_LONGEST_LINE`."""

_LONGEST_LINE = 1_000


def language_of(name: str) -> str:
    """Return the language of a fence's name or a file's path; "" where it is none of ours."""
    word = name.strip().replace("\\", "/").rpartition("/")[2].rpartition(".")[2].lower()
    return _LANGUAGES.get(word, "")


def highlight(text: str, language: str) -> Html:
    """Return a text with its parts in spans, escaped; as it is where the language is "" or the text is long."""
    if not language or len(text) > _LONGEST or max(map(len, text.split("\n")), default=0) > _LONGEST_LINE:
        return Html(html_text(text))
    try:
        tokens = list(_lexer(language).get_tokens(terminal(text, newline=True, tab=True)))
    except Exception:  # noqa: BLE001 - whatever fails in a lexer, the plain text can be shown
        return Html(html_text(text))
    parts = groupby(tokens, key=lambda token: _class_of(str(token[0])[len("Token.") :], token[1]))
    return join(*(_span(name, "".join(value for _, value in group)) for name, group in parts))


def _class_of(kind: str, value: str) -> str:
    return next((name for prefix, name in _CLASSES if kind.startswith(prefix)), "") if value.strip() else ""


def _span(name: str, value: str) -> Html:
    return tag("span", value, class_=name) if name else join(value)


@cache
def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped] # it comes with rich

    return get_lexer_by_name(language, stripnl=False, ensurenl=False)
