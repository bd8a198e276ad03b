"""The variables from which the SDKs of model providers take the address of their server.

    google-genai        GOOGLE_GEMINI_BASE_URL, GOOGLE_VERTEX_BASE_URL    https://github.com/googleapis/python-genai
    anthropic           ANTHROPIC_BASE_URL                                https://github.com/anthropics/anthropic-sdk-python
    openai              OPENAI_BASE_URL, AZURE_OPENAI_ENDPOINT            https://github.com/openai/openai-python
    openai < 1, langchain-openai, litellm    OPENAI_API_BASE              https://docs.litellm.ai/docs/providers/openai
    litellm             ANTHROPIC_API_BASE                                https://docs.litellm.ai/docs/providers/anthropic
    groq                GROQ_BASE_URL                                     https://github.com/groq/groq-python
    together            TOGETHER_BASE_URL                                 https://github.com/togethercomputer/together-py
    claude-agent-sdk    ANTHROPIC_BASE_URL, which it gives to Claude Code

A variable without a default is only followed where it is set: its server depends on a region, a resource or an account.
Bedrock is not among them: its requests are signed for their host, and its streams are not text.

Behind an address that is not Anthropic's, Claude Code, which claude-agent-sdk starts, leaves out what gateways may not
know: the search for tools, the long context window. `_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL=1` is its own switch for
a proxy before Anthropic, and is set only where the requests do end there.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from sessionlog.proxy.agents.draft import Draft

ANTHROPIC = "https://api.anthropic.com"
OPENAI = "https://api.openai.com/v1"
GOOGLE = "https://generativelanguage.googleapis.com"


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable with a base URL.

    Attributes:
        name: The variable.
        route: The route of its server.
        default: Where its readers go without it; None if that is not one place.
        instead: A variable that they read where this one is not set; "" if there is none.
    """

    name: str
    route: str
    default: str | None = None
    instead: str = ""


_VARIABLES = (
    _Variable("ANTHROPIC_API_BASE", "anthropic"),
    _Variable("OPENAI_API_BASE", "openai", OPENAI, instead="OPENAI_BASE_URL"),
    _Variable("OPENAI_BASE_URL", "openai", OPENAI),
    _Variable("GOOGLE_GEMINI_BASE_URL", "google", GOOGLE),
    _Variable("GOOGLE_VERTEX_BASE_URL", "google"),
    _Variable("AZURE_OPENAI_ENDPOINT", "azure"),
    _Variable("GROQ_BASE_URL", "groq", "https://api.groq.com"),
    _Variable("TOGETHER_BASE_URL", "together"),
)
"""`OPENAI_API_BASE` stands before the variable whose value it takes, as that one changes when its turn comes."""


def set_sdk_variables(draft: Draft) -> None:
    """Point the variables of all SDKs at the proxy."""
    set_anthropic_address(draft)
    for one in _VARIABLES:
        draft.set_address(one.name, one.route, one.default, known=draft.environment.get(one.instead))


def set_anthropic_address(draft: Draft) -> bool:
    """Point ANTHROPIC_BASE_URL at the proxy; return whether that was possible."""
    real = draft.set_address("ANTHROPIC_BASE_URL", "anthropic", ANTHROPIC)
    if real and urlsplit(real).hostname == urlsplit(ANTHROPIC).hostname:
        draft.environment.setdefault("_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL", "1")
    return real is not None
