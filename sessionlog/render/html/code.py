"""Code: highlight a text in a programming language as spans of a few classes.

The language comes from the name that a log gives, among those below: a lexer that guesses reads a text many times.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sessionlog.render.escape import html, terminal
from sessionlog.render.html.page import Html

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
        return Html(html(text))
    try:
        tokens = list(_lexer(language).get_tokens(terminal(text, newline=True, tab=True)))
    except Exception:  # noqa: BLE001 - whatever fails in a lexer, the plain text can be shown
        return Html(html(text))
    return Html("".join(_span(str(kind)[len("Token.") :], value) for kind, value in tokens))


def _span(kind: str, value: str) -> str:
    name = next((name for prefix, name in _CLASSES if kind.startswith(prefix)), "")
    return f'<span class="{name}">{html(value)}</span>' if name and value.strip() else html(value)


@cache
def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped] # it comes with rich

    return get_lexer_by_name(language, stripnl=False, ensurenl=False)
