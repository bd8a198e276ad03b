"""The providers behind the addresses of servers."""

from __future__ import annotations

_VENDORS = {"x": "x-ai", "googleapis": "google", "amazonaws": "aws"}


def vendor_of(address: object) -> str | None:
    """Return the provider at an address: `openai` for api.openai.com; the host name where there is no domain."""
    from urllib.parse import urlsplit

    host = urlsplit(str(address or "")).hostname or ""
    labels = host.split(".")
    if len(labels) < 2 or _is_ip(host):
        return host or None
    return _VENDORS.get(labels[-2], labels[-2])


def _is_ip(host: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(host)
    except ValueError:
        return False
    return True
