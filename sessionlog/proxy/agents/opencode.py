"""opencode, and Kilo, which descends from it: `provider.NAME.options.baseURL` in `OPENCODE_CONFIG_CONTENT`.

    read          config.json, opencode.json and opencode.jsonc in $XDG_CONFIG_HOME/opencode; $OPENCODE_CONFIG;
                  opencode.json(c) up from the project, `.opencode/` too; $OPENCODE_CONFIG_DIR; the variable itself,
                  which beats them all and is kept. The names, not the keys, of the logins in
                  $XDG_DATA_HOME/opencode/auth.json
    source        https://opencode.ai/docs/config, https://opencode.ai/docs/providers
    tried         1.18.33; Kilo is as its documentation describes it

Only providers that the user has are named there: one that is named would appear among the models.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sessionlog.proxy.agents.draft import Draft
from sessionlog.proxy.agents.settings_files import as_table, parse_json, read_json, text_at


@dataclass(frozen=True, slots=True)
class _Known:
    """A provider that opencode knows by itself.

    Attributes:
        key: The variable with its key.
        address: Its server.
    """

    key: str
    address: str


_KNOWN = {
    "anthropic": _Known("ANTHROPIC_API_KEY", "https://api.anthropic.com/v1"),
    "openai": _Known("OPENAI_API_KEY", "https://api.openai.com/v1"),
    "google": _Known("GOOGLE_GENERATIVE_AI_API_KEY", "https://generativelanguage.googleapis.com/v1beta"),
    "openrouter": _Known("OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
    "opencode": _Known("OPENCODE_API_KEY", "https://opencode.ai/zen/v1"),
    "deepseek": _Known("DEEPSEEK_API_KEY", "https://api.deepseek.com"),
    "xai": _Known("XAI_API_KEY", "https://api.x.ai/v1"),
    "groq": _Known("GROQ_API_KEY", "https://api.groq.com/openai/v1"),
    "mistral": _Known("MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
}
"""https://models.dev, and the defaults of the AI SDK's packages."""

_VARIABLE = re.compile(r"\{env:([^}]+)\}")


def plan_opencode(draft: Draft) -> None:
    """Point opencode's providers at the proxy."""
    _plan(draft, "opencode")


def plan_kilo(draft: Draft) -> None:
    """Point Kilo's providers at the proxy."""
    _plan(draft, "kilo")


def _plan(draft: Draft, agent: str) -> None:
    variable = f"{agent.upper()}_CONFIG_CONTENT"
    content = _content(draft, variable)
    addresses = {name: known.address for name, known in _KNOWN.items() if draft.environment.get(known.key)}
    logins = read_json(draft, _base(draft, "XDG_DATA_HOME", ".local/share", agent, "auth.json"))
    addresses |= {name: _KNOWN[name].address for name in logins if name in _KNOWN}
    for config in (*_configurations(draft, agent), content):
        for name, provider in as_table(config.get("provider")).items():
            if found := _expanded(draft, text_at(provider, "options", "baseURL")):
                addresses[name] = found
            elif name in _KNOWN:
                addresses.setdefault(name, _KNOWN[name].address)
    providers = dict(as_table(content.get("provider")))
    for name, address in addresses.items():
        if proxied := draft.through_proxy(name, address):
            options = as_table(as_table(providers.get(name)).get("options"))
            providers[name] = {**as_table(providers.get(name)), "options": {**options, "baseURL": proxied}}
    if providers:
        draft.environment[variable] = json.dumps({**content, "provider": providers})
    for name in logins:
        if name not in addresses:
            draft.note(f"What {agent} asks {name} is not recorded: where its server is, only {agent} knows.")
        elif name == "openai" and text_at(logins, name, "type") == "oauth":
            draft.note(f"What {agent} asks ChatGPT is not recorded: with that login it ignores a set address.")


def _content(draft: Draft, variable: str) -> dict[str, Any]:
    """Return the configuration in a variable; {} if there is none that can be read."""
    try:
        return dict(as_table(parse_json(draft.environment.get(variable) or "{}")))
    except (ValueError, RecursionError):
        return {}


def _configurations(draft: Draft, agent: str) -> Iterator[Mapping[str, Any]]:
    """Yield the configurations that are read, the weakest first."""
    names = (f"{agent}.json", f"{agent}.jsonc")
    for name in ("config.json", *names):
        yield read_json(draft, _base(draft, "XDG_CONFIG_HOME", ".config", agent, name))
    if path := draft.environment.get(f"{agent.upper()}_CONFIG"):
        yield read_json(draft, os.path.join(draft.folder, path))
    for folder in reversed(_upwards(draft.folder)):
        for name in names:
            yield read_json(draft, os.path.join(folder, name))
            yield read_json(draft, os.path.join(folder, f".{agent}", name))
    if given := draft.environment.get(f"{agent.upper()}_CONFIG_DIR"):
        for name in names:
            yield read_json(draft, os.path.join(given, name))


def _upwards(folder: str) -> list[str]:
    """Return a folder and those above it, up to the root of its repository."""
    found = [folder]
    while not os.path.exists(os.path.join(found[-1], ".git")) and os.path.dirname(found[-1]) != found[-1]:
        found.append(os.path.dirname(found[-1]))
    return found


def _expanded(draft: Draft, text: str) -> str:
    """Return a text with its `{env:NAME}` replaced, as opencode replaces them."""
    return _VARIABLE.sub(lambda found: draft.environment.get(found[1].strip(), ""), text)


def _base(draft: Draft, variable: str, default: str, *parts: str) -> str:
    given = draft.environment.get(variable, "")
    return os.path.join(given if os.path.isabs(given) else draft.path(default), *parts)
