"""A launch in the making: an agent's plan reads and changes one, step by step.

An address is cut in two at its path. The server, `https://api.openai.com`, becomes the upstream of a route; the path,
`/v1`, stays in the address at the proxy. So clients that look at the path of their base URL see what they would have
seen, and all addresses of one server can share a route.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from sessionlog.proxy.upstream import parse_upstream


class Draft:
    """A command on its way to a `Launch`.

    Args:
        arguments: What follows the program's name.
        environment: The variables of the child.
        proxy_url: Name of a route → its address at the proxy.
        upstreams: Name of a route → the base URL that its requests are to go to, in place of the agent's own.
        folder: Where the child will run.
        private_file: Writes a text to a private file of a given name, and returns its path; None if that is impossible.

    Attributes:
        arguments: As given; a plan may change them.
        environment: A copy of the given one; a plan may change it.
        upstreams: Name of a route → the server behind it.
        notes: Sentences for people.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        proxy_url: Callable[[str], str],
        *,
        upstreams: Mapping[str, str],
        folder: str,
        private_file: Callable[[str, str], str] | None,
    ) -> None:
        self.arguments = list(arguments)
        self.environment = dict(environment)
        self.upstreams: dict[str, str] = {}
        self.notes: list[str] = []
        self.folder = folder
        self.private_file = private_file
        self._proxy_url = proxy_url
        self._chosen = upstreams

    @property
    def home(self) -> str:
        """The home folder of the child's user."""
        return self.environment.get("HOME") or os.path.expanduser("~")

    def path(self, *parts: str) -> str:
        """Return a path below the home folder."""
        return os.path.join(self.home, *parts)

    def note(self, sentence: str) -> None:
        """Add a sentence for people, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def through_proxy(self, route: str, address: str) -> str | None:
        """Return the address that leads to a server through the proxy; None, with a note, for what is no address.

        Args:
            route: The route's name; another server under the same name gets a number behind it.
            address: A base URL: `https://api.openai.com/v1`.
        """
        try:
            url = urlsplit(self._chosen.get(route, address).strip())
            origin = f"{url.scheme}://{url.netloc}"
            parse_upstream(origin)
        except ValueError:
            self.note(f"What {route} is asked is not recorded: its address is no plain http or https URL.")
            return None
        query = f"?{url.query}" if url.query else ""
        return f"{self._proxy_url(self._route_to(origin, route))}{url.path.rstrip('/')}{query}"

    def set_address(self, variable: str, route: str, default: str | None, *, known: str | None = None) -> str | None:
        """Point a variable at the proxy; return the real address, or None if the variable stays as it is.

        Args:
            variable: The variable with a base URL.
            route: The route's name.
            default: Where its readers go without it; None leaves a variable alone that is not set.
            known: An address from settings that the child would read if the variable were not set.
        """
        address = self.environment.get(variable) or known or default
        proxied = self.through_proxy(route, address) if address else None
        if not address or proxied is None:
            return None
        self.environment[variable] = proxied
        return self._chosen.get(route, address)

    def _route_to(self, origin: str, wanted: str) -> str:
        name, number = wanted, 1
        while self.upstreams.get(name, origin) != origin:
            number += 1
            name = f"{wanted}-{number}"
        self.upstreams[name] = origin
        return name
