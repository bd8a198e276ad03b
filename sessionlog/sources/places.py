"""Places: where each agent writes its logs, by the ids of the built-in sources.

They stand here and not in the sources' modules, so that a report looks for logs that are new without importing any
source: an agent without a folder costs nothing.
"""

from __future__ import annotations

import os

from sessionlog.places import session_directory
from sessionlog.sources.find_places import expand_places, first_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sessionlog.sources.find_places import Env, Template

CLAUDE_DESKTOP = "local-agent-mode-sessions"
CODEX_FOLDERS = ("sessions", "archived_sessions")

_CODEX_BELOW = (*CODEX_FOLDERS, "")
_CLAWS = (
    "$OPENCLAW_DIR", "$OPENCLAW_STATE_DIR", "~/.openclaw", "~/.clawdbot", "~/.moltbot", "~/.moldbot", "~/.openclaw-*",
)  # fmt: skip
_GOOSE = "sessions/sessions.db"
_LLM = ("$XDG_CONFIG_HOME", "~/Library/Application Support", "$APPDATA")


def claude_code(*below: str) -> tuple[Template, ...]:
    """Return the templates of Claude Code's folders, with the folders below them."""
    return tuple(
        first_of("$CLAUDE_CONFIG_DIR", default, below=below or ("",), is_list=True)
        for default in ("$XDG_CONFIG_HOME/claude", "~/.claude")
    )


def _opencode(own: str, data_dir: str, database: str) -> tuple[Template, ...]:
    """Return the templates of an agent that is built on opencode: its folder's name, and two variables."""
    return (
        first_of(f"${data_dir}", f"$XDG_DATA_HOME/{own}", below=(f"${database}",)),
        first_of(f"${data_dir}", is_list=True),
        *(
            first_of(f"{place}/{own}", unless=data_dir)
            for place in ("$XDG_DATA_HOME", "~/Library/Application Support", "$LOCALAPPDATA")
        ),
    )


def _native(env: Env) -> Iterator[str]:
    yield session_directory(env)


def _fizeau(env: Env) -> Iterator[str]:
    here = env.get("PWD", "")
    if os.path.isabs(here):
        yield os.path.join(here, ".fizeau", "sessions")


def _otel(env: Env) -> Iterator[str]:
    yield from filter(None, env.get("SESSIONLOG_OTEL_PATH", "").split(os.pathsep))


PLACES: Mapping[str, tuple[Template, ...]] = {
    "native": (_native,),
    "fizeau": (_fizeau,),
    "claude-code": (
        *claude_code("projects", "transcripts"),
        f"$XDG_CONFIG_HOME/Claude/{CLAUDE_DESKTOP}",
        f"~/Library/Application Support/Claude/{CLAUDE_DESKTOP}",
        f"$APPDATA/Claude/{CLAUDE_DESKTOP}",
    ),
    "codex": (
        first_of("$CODEX_HOME", "~/.codex", below=_CODEX_BELOW),
        *(
            first_of(claw, below=[f"agents/*/agent/codex-home/{one}" for one in _CODEX_BELOW], is_list=True)
            for claw in _CLAWS
        ),
    ),
    "gemini": (
        first_of("$GEMINI_DATA_DIR", "$GEMINI_CLI_HOME/.gemini/tmp", "~/.gemini/tmp", is_list=True),
        first_of("$GEMINI_DATA_DIR", "$GEMINI_CLI_HOME/tmp", "~/.gemini/tmp", is_list=True),
    ),
    "openclaw": (
        first_of(
            "$OPENCLAW_DIR,$OPENCLAW_STATE_DIR",
            "$OPENCLAW_DIR",
            "$OPENCLAW_STATE_DIR",
            "~/.openclaw,~/.openclaw-*,~/.clawdbot,~/.moltbot,~/.moldbot",
            below=(
                "agents/*/agent/openclaw-agent.sqlite",
                "agents/*/sessions",
                "agents/*/session-sqlite-import-archive",
                "sessions",
            ),
            is_list=True,
        ),
    ),
    "pi": (
        first_of("$PI_CODING_AGENT_DIR", "$PI_AGENT_DIR", "~/.pi/agent", below=("sessions",)),
        "$PI_CODING_AGENT_SESSION_DIR",
        "$PI_AGENT_DIR/--*",
        *(f"~/.{agent}/agent/sessions" for agent in ("omp", "senpi", "kimchi")),
        first_of("$PRIME_AGENT_SESSION_DIR", "~/.prime/agent/sessions"),
        first_of("$PRIME_AGENT_SESSION_DIR/../session-artifacts", "~/.prime/agent/session-artifacts"),
    ),
    "opencode": _opencode("opencode", "OPENCODE_DATA_DIR", "OPENCODE_DB"),
    "kilo": _opencode("kilo", "KILO_DATA_DIR", "KILO_DB"),
    "mimo": _opencode("mimocode", "MIMOCODE_HOME", "MIMOCODE_DB"),
    "qwen-code": (
        first_of(
            "$QWEN_DATA_DIR", "$QWEN_RUNTIME_DIR", "$QWEN_HOME", "~/.qwen", below=("projects", "tmp"), is_list=True
        ),
    ),
    "kimi": (
        first_of("$KIMI_SHARE_DIR", "$KIMI_DATA_DIR", "~/.kimi", below=("sessions",), is_list=True),
        first_of("$KIMI_CODE_HOME", "~/.kimi-code", below=("sessions",)),
    ),
    "llm": (
        "$LLM_USER_PATH/logs.db",
        *(first_of(f"{place}/io.datasette.llm/logs.db", unless="LLM_USER_PATH") for place in _LLM),
    ),
    "otel": (_otel,),
    "copilot": (first_of("$COPILOT_HOME", "~/.copilot", below=("session-state", "session-store.db")),),
    "cline": (first_of("$CLINE_DIR", "~/.cline", below=("data/sessions",)),),
    "droid": (
        first_of("$DROID_SESSIONS_DIR"),
        first_of("$FACTORY_DIR", "~/.factory", below=("sessions",)),
    ),
    "goose": (
        first_of("$GOOSE_PATH_ROOT/data", "$XDG_DATA_HOME/goose", below=(_GOOSE,)),
        first_of("$XDG_DATA_HOME/Block/goose", below=(_GOOSE,)),
        first_of("~/Library/Application Support/goose", below=(_GOOSE,)),
        first_of("~/Library/Application Support/Block/goose", below=(_GOOSE,)),
    ),
    "crush": (first_of("$CRUSH_GLOBAL_DATA", "$XDG_DATA_HOME/crush"),),
    "amp": (first_of("$AMP_DATA_DIR", "$XDG_DATA_HOME/amp", below=("threads",), is_list=True),),
    "grok": (first_of("$GROK_HOME", "~/.grok", below=("sessions",)),),
    "hermes": (first_of("$HERMES_HOME", "~/.hermes", below=("state.db", "profiles/*/state.db")),),
}
"""In the order in which the sources are tried on an unknown log; each module is named by its source's id."""


IN_WORKING_FOLDER = frozenset({"fizeau"})
"""Sources whose places depend on the working folder."""


def searched(env: Env) -> dict[str, list[str]]:
    """Return source's id → the paths where its logs may be, existing or not."""
    return {source_id: expand_places(env, places) for source_id, places in PLACES.items()}
