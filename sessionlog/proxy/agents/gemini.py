"""Gemini CLI: `GOOGLE_GEMINI_BASE_URL` with a key, `CODE_ASSIST_ENDPOINT` with a Google login.

    read          .gemini/settings.json of the project and of the user ($GEMINI_CLI_HOME, else home), for the login;
                  the nearest `.env` (`.gemini/.env` first) up from the project, else of the home, for addresses
    source        https://github.com/google-gemini/gemini-cli/blob/main/docs/reference/configuration.md
    tried         0.61.0, with a key: a variable of the environment beats `.env`. Without a chosen login, a key and
                  GOOGLE_GEMINI_BASE_URL make Gemini CLI choose the login `gateway`, which sends the same key

With a Google login the wire wraps requests and answers of the Gemini API: `{"request": …}`, `{"response": …}`.
"""

from __future__ import annotations

import os

from sessionlog.proxy.agents.draft import Draft
from sessionlog.proxy.agents.sdk_variables import GOOGLE
from sessionlog.proxy.agents.settings_files import read_dotenv, read_json, text_at

_CODE_ASSIST = "https://cloudcode-pa.googleapis.com"
_GOOGLE_LOGINS = ("oauth-personal", "compute-default-credentials")


def plan_gemini(draft: Draft) -> None:
    """Point Gemini CLI at the proxy, by the login that it uses."""
    known = nearest_dotenv(draft, ".gemini")
    variables = known | draft.environment
    login = _login(draft, variables)
    if login == "vertex-ai":
        if not draft.set_address("GOOGLE_VERTEX_BASE_URL", "google", None, known=known.get("GOOGLE_VERTEX_BASE_URL")):
            draft.note("Gemini CLI uses Vertex AI, whose server depends on its region: its requests are not recorded.")
    elif login in _GOOGLE_LOGINS:
        draft.set_address("CODE_ASSIST_ENDPOINT", "google", _CODE_ASSIST, known=known.get("CODE_ASSIST_ENDPOINT"))
    elif login:
        draft.set_address("GOOGLE_GEMINI_BASE_URL", "google", GOOGLE, known=known.get("GOOGLE_GEMINI_BASE_URL"))
    else:
        draft.set_address("CODE_ASSIST_ENDPOINT", "google", _CODE_ASSIST, known=known.get("CODE_ASSIST_ENDPOINT"))
        draft.note("Gemini CLI has no login yet: only one with a Google account will be recorded.")


def nearest_dotenv(draft: Draft, own_folder: str) -> dict[str, str]:
    """Return the variables of the `.env` that Gemini CLI, or a descendant of it, reads: the first one on its way.

    Args:
        draft: The launch.
        own_folder: The agent's folder in a project: `.gemini`.
    """
    folder, above = draft.folder, ""
    while folder != above:
        for path in (os.path.join(folder, own_folder, ".env"), os.path.join(folder, ".env")):
            if found := read_dotenv(draft, path):
                return found
        folder, above = os.path.dirname(folder), folder
    return read_dotenv(draft, draft.path(own_folder, ".env")) or read_dotenv(draft, draft.path(".env"))


def _login(draft: Draft, variables: dict[str, str]) -> str:
    """Return the login in Gemini CLI's words; "" if none is chosen."""
    home = draft.environment.get("GEMINI_CLI_HOME") or draft.home
    for folder in (draft.folder, home):
        settings = read_json(draft, os.path.join(folder, ".gemini", "settings.json"))
        if chosen := text_at(settings, "security", "auth", "selectedType") or text_at(settings, "selectedAuthType"):
            return chosen
    if variables.get("GOOGLE_GENAI_USE_GCA") == "true":
        return "oauth-personal"
    if variables.get("GOOGLE_GENAI_USE_VERTEXAI") == "true":
        return "vertex-ai"
    if variables.get("GEMINI_API_KEY") or variables.get("GOOGLE_GEMINI_BASE_URL"):
        return "gateway"
    return ""
