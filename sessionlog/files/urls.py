"""URLs of remote places: what is one, and how it is named without what is secret in it."""

from __future__ import annotations

VERSIONED, TIMED = -1, -2
"""Devices of remote objects: known by an ETag or a version, which every change changes; or by their time of writing."""

_WEB = ("http", "https")
_BUCKETS = ("s3", "s3a")


def is_url(path: str) -> bool:
    """Whether a path is the URL of a remote file or folder, such as `s3://bucket/logs`."""
    scheme, mark, _ = path.partition("://")
    return bool(mark) and len(scheme) > 1 and scheme.isascii() and scheme.replace("+", "").isalnum()


def without_password(url: str) -> str:
    """Return a URL without password, key and parameters: the name of a place everywhere but in its connection."""
    scheme, user, rest = split_url(url)
    if scheme in _WEB:
        rest = rest.partition("#")[0].partition("?")[0]
    return f"{scheme}://{'' if ':' in user or not user else f'{user}@'}{rest.rstrip('/')}"


def split_url(url: str) -> tuple[str, str, str]:
    """Return a URL's scheme, its user with the password, or "", and what follows."""
    scheme, _, rest = url.partition("://")
    server = rest if scheme in _BUCKETS and ":" in rest.partition("/")[0] else rest.partition("/")[0]
    user, at, _ = server.rpartition("@")  # a secret key may have a slash
    return scheme, user, rest[len(user) + len(at) :]


def address_of(url: str) -> tuple[str, dict[str, str]]:
    """Return a URL as fsspec expects it, and the options that it does not read from a URL."""
    scheme, user, _ = split_url(url)
    if scheme not in _BUCKETS or ":" not in user:
        return url, {}
    key, _, secret = user.partition(":")
    return without_password(url), {"key": key, "secret": secret}


def server_of(url: str) -> str:
    """Return the part of a URL that names its bucket or server."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def secrets_of(url: str) -> tuple[str, ...]:
    """Return the parts of a URL that no message may show."""
    scheme, user, rest = split_url(url)
    query = [rest.partition("?")[2]] if scheme in _WEB else []
    parts = [user, *user.split(":", 1)] if ":" in user else []
    return tuple(sorted({part for part in (*parts, *query) if part}, key=len, reverse=True))
