"""GitHub Copilot CLI: the server of a provider of one's own, `COPILOT_PROVIDER_BASE_URL`.

    source        `copilot help environment`
    tried         1.0.102

Without that variable Copilot's own routing chooses the servers, and no setting puts a proxy before those.
"""

from __future__ import annotations

from sessionlog.proxy.agents.draft import Draft


def plan_copilot(draft: Draft) -> None:
    """Point Copilot's provider at the proxy, if the user has one."""
    if not draft.set_address("COPILOT_PROVIDER_BASE_URL", "copilot", None):
        draft.note("Copilot's own models are not recorded; those of COPILOT_PROVIDER_BASE_URL would be.")
    elif "COPILOT_PROVIDER_TRANSPORT" in draft.environment:
        draft.environment["COPILOT_PROVIDER_TRANSPORT"] = "http"  # not "websockets", which cannot be recorded
