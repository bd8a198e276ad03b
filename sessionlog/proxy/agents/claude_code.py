"""Claude Code: `ANTHROPIC_BASE_URL`, and `--settings` where a settings file sets it.

precedence    managed settings > --settings > .claude/settings.local.json > .claude/settings.json
              > $CLAUDE_CONFIG_DIR/settings.json, else ~/.claude/settings.json > the environment
source        https://code.claude.com/docs/en/settings, https://code.claude.com/docs/en/env-vars
tried         2.1.330: `env` of a settings file beats the environment, `--settings` beats the file, of two
              `--settings` only the last is read, an empty one is ignored, a broken one ends Claude Code

Variables alone are set where no settings file sets them: subcommands then get no option that they might not know.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from sessionlog.proxy.agents.arguments import option_value, replace_value
from sessionlog.proxy.agents.draft import Draft
from sessionlog.proxy.agents.sdk_variables import set_anthropic_address
from sessionlog.proxy.agents.settings_files import as_table, first_text, parse_json, read_json

_ADDRESS = "ANTHROPIC_BASE_URL"
MANAGED = {
    "darwin": "/Library/Application Support/ClaudeCode/managed-settings.json",
    "win32": r"C:\Program Files\ClaudeCode\managed-settings.json",
}.get(sys.platform, "/etc/claude-code/managed-settings.json")
_VERTEX = "ANTHROPIC_VERTEX_BASE_URL"
_FOUNDRY = "ANTHROPIC_FOUNDRY_BASE_URL"


def plan_claude_code(draft: Draft) -> None:
    """Point Claude Code at the proxy, and follow the address that it has from its settings."""
    managed = as_table(read_json(draft, MANAGED).get("env"))
    given = option_value(draft.arguments, "--settings")
    own = _own_settings(draft, given[1]) if given else {}
    layers = [as_table(own.get("env")), *_files(draft)]
    variables = [managed, *layers, draft.environment]
    if _is_on(first_text(variables, "CLAUDE_CODE_USE_BEDROCK")):
        draft.note("Claude Code uses Bedrock, whose requests are signed for their server: they are not recorded.")
        return
    for switch, variable in (("CLAUDE_CODE_USE_VERTEX", _VERTEX), ("CLAUDE_CODE_USE_FOUNDRY", _FOUNDRY)):
        if _is_on(first_text(variables, switch)) and not first_text(variables, variable):
            draft.note(
                f"Claude Code is only recorded there where {variable} is set: its server depends on the account."
            )
            return
    if first_text([managed], _ADDRESS) or first_text(variables, "ANTHROPIC_UNIX_SOCKET"):
        draft.note("Claude Code is not recorded: its server is a socket, or set by managed settings.")
        return
    _set_addresses(draft, layers, own)


def _set_addresses(draft: Draft, layers: list[Mapping[str, Any]], own: Mapping[str, Any]) -> None:
    """Set the addresses in the environment, and in `--settings` those that a settings file sets."""
    known = {variable: found for variable in (_ADDRESS, _VERTEX, _FOUNDRY) if (found := first_text(layers, variable))}
    draft.environment.update(known)
    is_set = {
        _ADDRESS: set_anthropic_address(draft),
        _VERTEX: draft.set_address(_VERTEX, "anthropic", None),
        _FOUNDRY: draft.set_address(_FOUNDRY, "anthropic", None),
    }
    overruled = {variable: draft.environment[variable] for variable in known if is_set[variable]}
    if overruled:
        _inject(draft, {**own, "env": {**as_table(own.get("env")), **overruled}})


def _inject(draft: Draft, settings: Mapping[str, Any]) -> None:
    """Give Claude Code the settings of the user's own `--settings`, with our addresses in it.

    What stood in a file goes to a file again: a command line can be read by all users of a machine.
    """
    text = json.dumps(settings)
    given = option_value(draft.arguments, "--settings")
    if given is None:
        draft.arguments[:0] = ["--settings", text]
        return
    place, value = given
    if not value.lstrip().startswith("{"):
        if draft.private_file is None:
            draft.note(f"Claude Code's server is set in settings files, which cannot be overruled beside {value}.")
            return
        text = draft.private_file("claude-settings.json", text)
    replace_value(draft.arguments, place, value, text)


def _own_settings(draft: Draft, value: str) -> Mapping[str, Any]:
    """Return what the user's `--settings` holds: JSON, or a file."""
    if not value.lstrip().startswith("{"):
        return read_json(draft, os.path.join(draft.folder, os.path.expanduser(value))) if value else {}
    try:
        return as_table(parse_json(value))
    except (ValueError, RecursionError):
        return {}  # Claude Code itself ends with a message


def _files(draft: Draft) -> Iterator[Mapping[str, Any]]:
    """Yield the variables of the settings files that Claude Code reads, in order of precedence."""
    user = draft.environment.get("CLAUDE_CONFIG_DIR") or draft.path(".claude")
    paths = {
        "local": os.path.join(draft.folder, ".claude", "settings.local.json"),
        "project": os.path.join(draft.folder, ".claude", "settings.json"),
        "user": os.path.join(user, "settings.json"),
    }
    wanted = option_value(draft.arguments, "--setting-sources")
    for source, path in paths.items():
        if wanted is None or source in wanted[1].split(","):
            yield as_table(read_json(draft, path).get("env"))


def _is_on(value: str) -> bool:
    return value.lower() in ("1", "true", "yes", "on")
