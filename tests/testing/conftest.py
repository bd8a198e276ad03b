"""What all tests of replays share: no test may open a connection, or look up a name."""

import socket

import pytest


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    """A replay answers from a log; a connection would be a request that it has let through."""

    def refuse(*arguments, **options):
        raise AssertionError(f"the network is asked: {arguments[1:] or arguments}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
