"""Qwen Code: `OPENAI_BASE_URL`, and system settings of this run for the addresses of `modelProviders`.

    precedence    modelProviders of settings.json > --openai-base-url > OPENAI_BASE_URL (also from `.env` and from `env`
                  of settings.json, where it is not set) > security.auth.baseUrl of settings.json > OpenAI's server
    settings      $QWEN_CODE_SYSTEM_SETTINGS_PATH, else /etc/qwen-code/settings.json > .qwen/settings.json of the
                  project > $QWEN_HOME/settings.json, else ~/.qwen/settings.json
    source        https://qwenlm.github.io/qwen-code-docs/en/users/configuration/settings
    tried         0.24.4

`DASHSCOPE_PROXY_BASE_URL` is Qwen Code's own variable for a proxy before DashScope: without it the requests to a server
of another name would leave out the marks for its cache.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from sessionlog.proxy.agents.arguments import option_values, replace_value
from sessionlog.proxy.agents.draft import Draft
from sessionlog.proxy.agents.gemini import nearest_dotenv
from sessionlog.proxy.agents.model_lists import behind_proxy
from sessionlog.proxy.agents.sdk_variables import ANTHROPIC, GOOGLE, OPENAI
from sessionlog.proxy.agents.settings_files import as_table, first_text, read_json, text_at

_SYSTEM_VARIABLE = "QWEN_CODE_SYSTEM_SETTINGS_PATH"
SYSTEM = {
    "darwin": "/Library/Application Support/QwenCode/settings.json",
    "win32": r"C:\ProgramData\qwen-code\settings.json",
}.get(sys.platform, "/etc/qwen-code/settings.json")
_PROTOCOLS = {
    "openai": ("OPENAI_BASE_URL", "openai", OPENAI),
    "openai-responses": ("OPENAI_BASE_URL", "openai", OPENAI),
    "anthropic": ("ANTHROPIC_BASE_URL", "anthropic", ANTHROPIC),
    "gemini": ("GOOGLE_GEMINI_BASE_URL", "google", GOOGLE),
}
"""Login of Qwen Code → the variable that it reads, the route, and the server without it."""


def plan_qwen_code(draft: Draft) -> None:
    """Point Qwen Code at the proxy, and follow the addresses of its settings."""
    layers = _settings(draft)
    login = first_text(layers, "security", "auth", "selectedType") or "openai"
    for _, chosen in option_values(draft.arguments, "--auth-type"):
        login = chosen
    if login not in _PROTOCOLS:
        draft.note(f"Qwen Code's login {login} is not recorded: its server cannot be set.")
        return
    dotenv = nearest_dotenv(draft, ".qwen")
    for protocol in dict.fromkeys((login, "openai", "anthropic", "gemini")):
        variable, route, default = _PROTOCOLS[protocol]
        known = dotenv.get(variable) or first_text(layers, "env", variable)
        if protocol == login:
            known = known or first_text(layers, "security", "auth", "baseUrl")
        real = draft.set_address(variable, route, default if protocol in (login, "gemini") else None, known=known)
        _mark_dashscope(draft, real, draft.environment.get(variable))
    for place, address in [*option_values(draft.arguments, "--openai-base-url", "--openaiBaseUrl")]:
        if proxied := draft.through_proxy("openai", address):
            replace_value(draft.arguments, place, address, proxied)
            _mark_dashscope(draft, address, proxied)
    _redirect_providers(draft, layers)


def _redirect_providers(draft: Draft, layers: Sequence[Mapping[str, Any]]) -> None:
    """Write system settings of this run in which the models of `modelProviders` are behind the proxy."""
    providers: dict[str, Any] = {}
    for layer in reversed(layers):  # of two layers the later one's list is used whole
        providers |= as_table(layer.get("modelProviders"))
    moved = {provider: behind_proxy(draft, provider, models) for provider, models in providers.items()}
    if moved == providers:
        return
    if draft.private_file is None:
        draft.note("Models of Qwen Code's modelProviders are not recorded: their servers are in its settings only.")
        return
    system = {**layers[0], "modelProviders": moved}
    chosen = first_text(layers, "model", "baseUrl")  # picks one of several models of a name
    for before, after in _pairs(providers, moved):
        _mark_dashscope(draft, before, after)
        if before == chosen:
            system["model"] = {**as_table(system.get("model")), "baseUrl": after}
    draft.environment[_SYSTEM_VARIABLE] = draft.private_file("qwen-settings.json", json.dumps(system))


def _pairs(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the addresses of all models, as they were and as they are now."""
    for provider, models in before.items():
        for one, moved in zip(models, after[provider], strict=True) if isinstance(models, list) else ():
            if address := text_at(one, "baseUrl"):
                yield address, text_at(moved, "baseUrl")


def _mark_dashscope(draft: Draft, real: str | None, proxied: str | None) -> None:
    host = urlsplit(real or "").hostname or ""
    if proxied and host.endswith("aliyuncs.com") and "dashscope" in host:
        draft.environment.setdefault("DASHSCOPE_PROXY_BASE_URL", proxied)


def _settings(draft: Draft) -> list[Mapping[str, Any]]:
    """Return the settings in order of precedence; the system's come first."""
    user = draft.environment.get("QWEN_HOME") or draft.path(".qwen")
    system = draft.environment.get(_SYSTEM_VARIABLE) or SYSTEM
    project = os.path.join(draft.folder, ".qwen")
    return [read_json(draft, path) for path in (system, *(os.path.join(at, "settings.json") for at in (project, user)))]
