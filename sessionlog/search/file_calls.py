"""File calls: the tool calls that read or change a file, found by the paths in their arguments.

What a shell command does to a file is not known: only its text is searched, as that of any call.
"""

from __future__ import annotations

import posixpath

from sessionlog.errors import InvalidQuery
from sessionlog.search.find import Hit
from sessionlog.search.query import Query, Term, Texts
from sessionlog.sources.fold_items import Kind

KINDS = (Kind.PATHS,)


def path_query(path: str) -> Query:
    """Return the query that finds a file, or the end of its path, among the paths of calls.

    Raises:
        InvalidQuery: The path has no letters or digits.
    """
    words = Texts().words_of(_plain(path))
    if not words:
        raise InvalidQuery(f"--file {path!r} has no letters or digits")
    # A log may name the file by a shorter path than the user, so only its name has to be there as it is.
    name = Texts().words_of(posixpath.basename(_plain(path)))
    return Query((Term(tuple(name or words)),))


def names_file(hit: Hit, path: str) -> bool:
    """Whether a call names this file: by the same path, its end, or by one that is relative to the session's folder."""
    return hit.item is None or any(is_file(named, path, hit.session.project) for named in hit.item.text.split("\n"))


def is_file(named: str, path: str, project: str) -> bool:
    """Whether a logged path is that of a file which the user named by its path or the end of it."""
    logged, wanted = _plain(named), _plain(path)
    if not logged.startswith("/") and project:
        logged = _plain(posixpath.join(project, logged))
    return logged == wanted or (not wanted.startswith("/") and logged.endswith(f"/{wanted}"))


def _plain(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/").strip())
