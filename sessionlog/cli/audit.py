"""`sessionlog audit`: a session's requests on the wire, in the agent's log and in its OTel export, one by one."""

from __future__ import annotations

from typing import Any

from sessionlog.analytics.audit import audit_session
from sessionlog.cli import reporting as r
from sessionlog.cli.output import FOUND, Exit


def audit(session: str, **settings: Any) -> None:
    """Compare the agent's log of a session with what passed on the wire (`sessionlog run`), request by request.

    It names the requests that the agent does not log, such as titles and compactions, and token counts that differ. If
    the agent also exports OTel, that is compared, too. Exit code 1: something differs.

    Example: sessionlog audit 7d3c --json
    """
    arguments = r.ReportArguments(settings)
    context = arguments.context()
    with r.scan_progress() as progress:
        report = audit_session(session, **arguments.options(context, progress))
    r.show_report(report, arguments, context, what="requests")
    if report.differs:
        raise Exit(FOUND)
