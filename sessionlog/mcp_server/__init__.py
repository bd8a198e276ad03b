"""A server of the Model Context Protocol: agents query their own usage, budgets and context.

    tools         the tools and the function behind each
    arguments     the arguments of each tool  → input schemas
    documents     the result of each tool     → output schemas
    call_context  settings, environment and time of a call
    server        the protocol: list the tools, answer calls, turn errors into sentences

It needs the extra `mcp`, whose packages are imported nowhere else. The tools call the same functions as the commands,
so the results are the same.
"""

from __future__ import annotations

from sessionlog.errors import MissingExtra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def serve(log_error: Callable[[str], None], *, env: Mapping[str, str] | None = None, allow_paths: bool = False) -> None:
    """Serve on stdin and stdout until stdin ends.

    Args:
        log_error: Called with one line for each error of this program; the client gets only the type of the exception.
        env: The environment; the process's when None.
        allow_paths: A client may name any log, not only those in the folders where agents write.

    Raises:
        MissingExtra: The official SDK is not installed, or is older than 2.
    """
    try:
        import mcp.server  # noqa: F401 - an extra
        import mcp_types  # noqa: F401 - versions before 2 lack it
    except ImportError as error:
        raise MissingExtra("the MCP server needs: pip install 'sessionlog[mcp]'") from error
    from sessionlog.mcp_server.server import build_server, run_stdio

    run_stdio(build_server(env=env, log_error=log_error, allow_paths=allow_paths))
