"""The agents that are known: the names of their programs and packages, whose logs they write, how they are led.

Where a module of this package leads an agent, its docstring has the source of each fact and the version it was tried
with. For the others:

    Goose     OPENAI_HOST, ANTHROPIC_HOST    https://goose-docs.ai/docs/guides/environment-variables
    Crush     OPENAI_API_ENDPOINT, ANTHROPIC_API_ENDPOINT, GEMINI_API_ENDPOINT    https://github.com/charmbracelet/catwalk
    llm       the variables of OpenAI's SDK  https://llm.datasette.io/en/stable/other-models.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sessionlog.proxy.agents.claude_code import plan_claude_code
from sessionlog.proxy.agents.codex import plan_codex
from sessionlog.proxy.agents.copilot import plan_copilot
from sessionlog.proxy.agents.draft import Draft
from sessionlog.proxy.agents.droid import plan_droid
from sessionlog.proxy.agents.gemini import plan_gemini
from sessionlog.proxy.agents.opencode import plan_kilo, plan_opencode
from sessionlog.proxy.agents.qwen_code import plan_qwen_code
from sessionlog.proxy.agents.sdk_variables import ANTHROPIC, GOOGLE, OPENAI, set_sdk_variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent.

    Attributes:
        harness: Its name in sessions that are recorded on the wire.
        source: The id of the source that reads its own logs; None if there is none.
        plan: Points a draft at the proxy.
    """

    harness: str
    source: str | None
    plan: Callable[[Draft], None]


def _plan_goose(draft: Draft) -> None:
    draft.set_address("OPENAI_HOST", "openai", "https://api.openai.com")
    draft.set_address("ANTHROPIC_HOST", "anthropic", ANTHROPIC)


def _plan_crush(draft: Draft) -> None:
    draft.set_address("OPENAI_API_ENDPOINT", "openai", OPENAI)
    draft.set_address("ANTHROPIC_API_ENDPOINT", "anthropic", ANTHROPIC)
    draft.set_address("GEMINI_API_ENDPOINT", "google", GOOGLE)
    draft.note("Providers of Crush that have an address in its own crush.json are not recorded.")


def _settings_only(name: str, file: str) -> Callable[[Draft], None]:
    """Return the plan of an agent whose servers are only in a file: what reads the SDKs' variables is recorded."""

    def plan(draft: Draft) -> None:
        set_sdk_variables(draft)
        draft.note(f"{name} has its servers in {file}: it is recorded only where those read an SDK's variables.")

    return plan


_BY_HARNESS = (
    (Agent(harness="claude-code", source="claude-code", plan=plan_claude_code), "claude", "@anthropic-ai/claude-code"),
    (Agent(harness="codex", source="codex", plan=plan_codex), "codex", "@openai/codex"),
    (Agent(harness="gemini", source="gemini", plan=plan_gemini), "gemini", "@google/gemini-cli"),
    (Agent(harness="qwen-code", source="qwen-code", plan=plan_qwen_code), "qwen", "@qwen-code/qwen-code"),
    (Agent(harness="opencode", source="opencode", plan=plan_opencode), "opencode", "opencode-ai"),
    (Agent(harness="kilo", source="kilo", plan=plan_kilo), "kilo", "kilocode", "@kilocode/cli"),
    (Agent(harness="copilot", source="copilot", plan=plan_copilot), "copilot", "@github/copilot"),
    (Agent(harness="goose", source="goose", plan=_plan_goose), "goose"),
    (Agent(harness="crush", source="crush", plan=_plan_crush), "crush", "@charmland/crush"),
    (Agent(harness="llm", source="llm", plan=set_sdk_variables), "llm"),
    (Agent(harness="cline", source="cline", plan=_settings_only("Cline", "~/.cline")), "cline"),
    (Agent(harness="droid", source="droid", plan=plan_droid), "droid"),
    (
        Agent(harness="pi", source="pi", plan=_settings_only("pi", "~/.pi/agent/models.json")),
        "pi", "@mariozechner/pi-coding-agent", "@earendil-works/pi-coding-agent",
    ),
    (Agent(harness="kimi", source="kimi", plan=_settings_only("Kimi", "its config.toml")), "kimi", "kimi-cli"),
    (Agent(harness="openclaw", source="openclaw", plan=_settings_only("OpenClaw", "~/.openclaw")), "openclaw"),
    (Agent(harness="hermes", source="hermes", plan=_settings_only("Hermes", "~/.hermes/config.yaml")), "hermes"),
    (Agent(harness="amp", source="amp", plan=_settings_only("Amp", "its account")), "amp", "@sourcegraph/amp"),
)  # fmt: skip

AGENTS = {name: agent for agent, *names in _BY_HARNESS for name in names}
"""Name of a program or package → the agent."""
