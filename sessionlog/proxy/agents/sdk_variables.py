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
"""

from __future__ import annotations

from sessionlog.fast_dataclasses import dataclass
from sessionlog.proxy.agents.draft import Draft

__all__ = ["ANTHROPIC", "GOOGLE", "OPENAI", "SDK_VARIABLES", "Variable", "set_sdk_variables"]

ANTHROPIC = "https://api.anthropic.com"
OPENAI = "https://api.openai.com/v1"
GOOGLE = "https://generativelanguage.googleapis.com"


@dataclass(frozen=True, slots=True)
class Variable:
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


SDK_VARIABLES = (
    Variable("ANTHROPIC_BASE_URL", "anthropic", ANTHROPIC),
    Variable("ANTHROPIC_API_BASE", "anthropic"),
    Variable("OPENAI_API_BASE", "openai", OPENAI, instead="OPENAI_BASE_URL"),
    Variable("OPENAI_BASE_URL", "openai", OPENAI),
    Variable("GOOGLE_GEMINI_BASE_URL", "google", GOOGLE),
    Variable("GOOGLE_VERTEX_BASE_URL", "google"),
    Variable("AZURE_OPENAI_ENDPOINT", "azure"),
    Variable("GROQ_BASE_URL", "groq", "https://api.groq.com"),
    Variable("TOGETHER_BASE_URL", "together"),
)
"""`OPENAI_API_BASE` stands before the variable whose value it takes, as that one changes when its turn comes."""


def set_sdk_variables(draft: Draft) -> None:
    """Point the variables of all SDKs at the proxy."""
    for one in SDK_VARIABLES:
        draft.set_address(one.name, one.route, one.default, known=draft.environment.get(one.instead))
