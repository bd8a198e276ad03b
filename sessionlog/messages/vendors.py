"""The providers behind the addresses of servers."""

from __future__ import annotations

_SHARED = frozenset({"ac", "co", "com", "edu", "go", "gob", "gov", "ne", "net", "nom", "or", "org"})
"""Second labels under which the registries of countries give out names, as in `example.co.uk`."""
_VENDORS = {"x": "x-ai", "googleapis": "google", "amazonaws": "aws"}


def vendor_of(address: object) -> str | None:
    """Return the provider at an address: `openai` for api.openai.com; the host name where there is no domain."""
    from urllib.parse import urlsplit

    host = (urlsplit(str(address or "")).hostname or "").rstrip(".")
    labels = host.split(".")
    if len(labels) < 2 or _is_ip(host):
        return host or None
    is_shared = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SHARED
    name = labels[-3 if is_shared else -2]
    return _VENDORS.get(name, name)


def _is_ip(host: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(host)
    except ValueError:
        return False
    return True
