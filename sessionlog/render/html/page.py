"""Page: the frame of every HTML page: policy, style, script, and the tags that bodies consist of.

A page needs no network, and reads in full without its script. Its policy allows our own style and script by their
hashes, pictures inside the page, and nothing else: what a log contains stays text even if escaping failed
(https://www.w3.org/TR/CSP3/). `tag` escapes every text and attribute that it is given; markup is of the type `Html`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files as package_files

from sessionlog._version import __version__
from sessionlog.render.escape import html, html_text

GENERATOR = '<meta name="generator" content="sessionlog '
"""The beginning of the element by which a page is known as one of ours."""

_VOID = frozenset({"br", "col", "hr", "img", "input", "meta"})


class Html(str):
    """Markup that is safe to write as it is; only this package makes it."""

    __slots__ = ()


def tag(name: str, *content: str | None, **attributes: str | float | bool | None) -> Html:
    """Return an element; content that is not `Html` is escaped, and None is left out.

    Args:
        name: Its name.
        content: Texts and elements.
        attributes: Its attributes; `class_` is `class`, `data_x` is `data-x`, True is an attribute without a value, and
            False or None leaves it out.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(*content)}</{name}>")


def join(*content: str | None) -> Html:
    """Return content one after the other, escaped where it is not `Html`."""
    return Html("".join(part if isinstance(part, Html) else html_text(part) for part in content if part is not None))


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html(str(value))}"'


def render_page(title: str, body: Iterable[Html], *, kind: str) -> Iterator[str]:
    """Yield a page piece by piece, so that a long one is written in constant memory.

    Args:
        title: Its title, a text.
        body: Elements of the body.
        kind: The kind of page, a class of the body.
    """
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src 'sha256-{_digest(style)}'; script-src 'sha256-{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    # The policy comes before anything that it governs.
    yield f'<meta http-equiv="Content-Security-Policy" content="{html(policy)}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
    yield f'{GENERATOR}{html(__version__)}">\n'
    yield f"<title>{html(title)}</title>\n<style>{style}</style>\n</head>\n"
    yield f'<body class="{html(kind)}">\n'
    for element in body:
        yield element
        yield "\n"
    yield f"<script>{script}</script>\n</body>\n</html>\n"


@cache
def _asset(name: str) -> str:
    return package_files("sessionlog.render.html").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
