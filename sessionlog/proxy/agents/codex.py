"""Codex: `-c openai_base_url=…`, or the `base_url` of the provider that its configuration chooses.

    read          /etc/codex/config.toml, $CODEX_HOME/config.toml (~/.codex), $CODEX_HOME/NAME.config.toml and the table
                  `profiles.NAME` for `--profile NAME`, `-c key=value`; a project's own configuration names no provider
    source        https://developers.openai.com/codex/config-reference, https://developers.openai.com/codex/config-advanced
    tried         0.169.0: OPENAI_BASE_URL is ignored; `-c openai_base_url` keeps the provider's id, `openai`, in the
                  agent's log; the id is reserved, so nothing else of it can be set; `-c` before a subcommand holds for
                  it; a WebSocket comes first, and the answer 426 makes Codex use HTTP at once (404: after 7 seconds)

With a ChatGPT login the same provider asks chatgpt.com, also below another address, and packs its requests (zstd). The
login is in `auth.json`, of which only the kind is read.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from sessionlog.proxy.agents.arguments import option_value, option_values, replace_value
from sessionlog.proxy.agents.draft import Draft
from sessionlog.proxy.agents.sdk_variables import OPENAI
from sessionlog.proxy.agents.settings_files import as_table, read_json, read_toml, text_at

_CHATGPT = "https://chatgpt.com/backend-api/codex"
_LOCAL = {"ollama": "http://localhost:11434/v1", "lmstudio": "http://localhost:1234/v1"}
SYSTEM = "/etc/codex/config.toml"
_OVERRIDE = ("-c", "--config")
_ADDRESS = "openai_base_url"
_LONGEST_KEY = 4


def plan_codex(draft: Draft) -> None:
    """Point Codex's provider at the proxy."""
    config = _configuration(draft)
    provider = _provider(draft, config)
    if provider in _LOCAL:
        port = draft.environment.get("CODEX_OSS_PORT")
        default = f"http://localhost:{port}/v1" if port else _LOCAL[provider]
        draft.set_address("CODEX_OSS_BASE_URL", provider, default)
    elif provider == "openai":
        _override(draft, _ADDRESS, "openai", text_at(config, _ADDRESS) or _openai_server(draft))
    elif (table := as_table(as_table(config.get("model_providers")).get(provider))) and "." not in provider:
        address = text_at(table, "base_url") or _openai_server(draft)
        _override(draft, f"model_providers.{provider}.base_url", provider, address)
    else:
        draft.note(f"Codex's provider {provider} is not recorded: its address cannot be set on the command line.")


def _override(draft: Draft, key: str, route: str, address: str) -> None:
    """Set a key to an address at the proxy: in the user's own `-c`, else in one before all other arguments."""
    proxied = draft.through_proxy(route, address)
    if proxied is None:
        return
    setting = f"{key}={json.dumps(proxied)}"
    given = [one for one in option_values(draft.arguments, *_OVERRIDE) if one[1].partition("=")[0].strip() == key]
    for place, text in given:
        replace_value(draft.arguments, place, text, setting)
    if not given:
        draft.arguments[:0] = ["-c", setting]


def _provider(draft: Draft, config: Mapping[str, Any]) -> str:
    """Return the id of the provider that Codex will use."""
    options = draft.arguments[: draft.arguments.index("--")] if "--" in draft.arguments else draft.arguments
    if "--oss" in options:
        chosen = option_value(draft.arguments, "--local-provider")
        return chosen[1] if chosen else text_at(config, "oss_provider") or "ollama"
    return text_at(config, "model_provider") or "openai"


def _configuration(draft: Draft) -> dict[str, Any]:
    """Return Codex's configuration as it will read it, as far as providers go."""
    config = _merged(read_toml(draft, SYSTEM), read_toml(draft, _home(draft, "config.toml")))
    chosen = option_value(draft.arguments, "-p", "--profile")
    profile = chosen[1] if chosen else text_at(config, "profile")
    if profile and os.path.basename(profile) == profile:
        config = _merged(config, as_table(as_table(config.get("profiles")).get(profile)))
        config = _merged(config, read_toml(draft, _home(draft, f"{profile}.config.toml")))
    for _, text in option_values(draft.arguments, *_OVERRIDE):
        key, _, value = text.partition("=")
        config = _merged(config, _nested(key.strip().split("."), _value_of(value)))
    return config


def _nested(keys: Sequence[str], value: Any) -> Mapping[str, Any]:
    """Return the table in which a path of keys leads to a value; {} for a path that is longer than a provider's."""
    if len(keys) > _LONGEST_KEY:
        return {}
    for key in reversed(keys):
        value = {key: value}
    return as_table(value)


def _value_of(text: str) -> Any:
    """Return the value of a `-c`: TOML, or the text itself where that is none."""
    try:
        return tomllib.loads(f"value = {text.strip()}")["value"]
    except (ValueError, RecursionError):
        return text.strip()


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return two configurations as one, table by table; the second one wins."""
    both = {
        name: _merged(base[name], value) if isinstance(value, dict) and isinstance(base.get(name), dict) else value
        for name, value in over.items()
    }
    return {**base, **both}


def _openai_server(draft: Draft) -> str:
    """Return where the provider `openai` goes by itself: to the API with a key, else to ChatGPT."""
    if draft.environment.get("CODEX_API_KEY"):
        return OPENAI
    login = read_json(draft, _home(draft, "auth.json"))
    key = text_at(login, "OPENAI_API_KEY") if login else draft.environment.get("OPENAI_API_KEY")
    mode = text_at(login, "auth_mode").lower() or ("apikey" if key and "tokens" not in login else "chatgpt")
    return OPENAI if mode.startswith("api") else _CHATGPT


def _home(draft: Draft, name: str) -> str:
    return os.path.join(draft.environment.get("CODEX_HOME") or draft.path(".codex"), name)
