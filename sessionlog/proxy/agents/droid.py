"""Droid: settings of this run, `$FACTORY_RUNTIME_SETTINGS_PATH`, with the user's own models behind the proxy.

Factory's own models are chosen and paid by its account, and no setting puts a proxy before those.

read          ~/.factory/settings.json, and the file of `--settings` or of the variable, which beats it
source        https://docs.factory.ai/cli/byok/overview
tried         0.215.0: a list `customModels` in the variable's file stands in for that of ~/.factory/settings.json
"""

from __future__ import annotations

import json
import os

from sessionlog.proxy.agents.arguments import option_value, replace_value
from sessionlog.proxy.agents.draft import Draft
from sessionlog.proxy.agents.model_lists import behind_proxy
from sessionlog.proxy.agents.settings_files import read_json

_VARIABLE = "FACTORY_RUNTIME_SETTINGS_PATH"


def plan_droid(draft: Draft) -> None:
    """Point Droid's custom models at the proxy."""
    draft.note("Factory's own models are not recorded; custom models of Droid's settings are.")
    given = option_value(draft.arguments, "--settings")
    own = given[1] if given else draft.environment.get(_VARIABLE, "")
    settings = read_json(draft, os.path.join(draft.folder, own)) if own else {}
    models = settings.get("customModels") or read_json(draft, draft.path(".factory", "settings.json")).get(
        "customModels"
    )
    moved = behind_proxy(draft, "droid", models)
    if moved == models:
        return
    if draft.private_file is None:
        draft.note("Custom models of Droid are not recorded: their servers are in its settings only.")
        return
    path = draft.private_file("droid-settings.json", json.dumps({**settings, "customModels": moved}))
    if given:
        replace_value(draft.arguments, *given, path)
    else:
        draft.environment[_VARIABLE] = path
