"""Lists of models in agents' settings, each model with its own address: `[{"model": …, "baseUrl": …}]`."""

from __future__ import annotations

from typing import Any

from sessionlog.proxy.agents.draft import Draft
from sessionlog.proxy.agents.settings_files import text_at


def behind_proxy(draft: Draft, route: str, models: Any) -> Any:
    """Return a list of models with their addresses at the proxy; whatever else stands there stays as it is."""
    if not isinstance(models, list):
        return models
    return [
        {**model, "baseUrl": proxied}
        if (address := text_at(model, "baseUrl")) and (proxied := draft.through_proxy(route, address))
        else model
        for model in models
    ]
