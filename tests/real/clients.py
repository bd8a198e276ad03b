"""What the homes' scripts configured: which source reads a client, and what it calls the providers.

A client that is not named here is read by the source of its own name, and its providers are only not unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.real.data import Home, Request

_ANY: Mapping[str, str] = {}


@dataclass(frozen=True, kw_only=True)
class Client:
    """What is known of a client.

    Attributes:
        source: The id of the source that reads its logs.
        providers: The beginning of an API's name → the provider in the client's configuration; `""` for all others.
        models: The beginning of a model's name → its provider, where one API serves several.
    """

    source: str
    providers: Mapping[str, str] = field(default_factory=lambda: _ANY)
    models: Mapping[str, str] = field(default_factory=lambda: _ANY)


_STUB = {"anthropic": "anthropic", "": "stub"}
CLIENTS = {
    "claude": Client(source="claude-code", providers={"": "anthropic"}),
    "cline": Client(source="cline", providers={"anthropic": "anthropic", "": "openai-compatible"}),
    "codex": Client(source="codex", providers={"": "stub"}),
    "gemini": Client(source="gemini", providers={"": "google"}),
    "kilo": Client(source="kilo", providers=_STUB),
    "kimi": Client(source="kimi", providers={"anthropic": "anthropic", "": "moonshotai"}),
    "kimicode": Client(
        source="kimi", providers={"anthropic": "anthropic"}, models={"kimi": "moonshotai", "gpt": "openai"}
    ),
    "openclaw": Client(source="openclaw", providers={"anthropic": "stubanth", "": "stub"}),
    "opencode": Client(source="opencode", providers=_STUB),
    "pi2": Client(
        source="pi",
        providers={"anthropic": "stubanth", "gemini": "stubgem", "responses": "stubresp", "chat": "stubchat"},
    ),
    "pi": Client(source="pi"),
    "qwen": Client(source="qwen-code", providers={"": "qwen"}),
}


def client_of(home: Home) -> Client:
    """Return what is known of a home's client."""
    return CLIENTS.get(home.client, Client(source=home.client))


def provider_of(home: Home, request: Request) -> str | None:
    """Return the provider of a request; None where the scripts do not tell."""
    client = client_of(home)
    named = [name for begin, name in client.models.items() if request.model.startswith(begin)]
    named += [name for begin, name in client.providers.items() if request.api.startswith(begin)]
    return named[0] if named else None
