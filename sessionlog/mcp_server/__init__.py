"""The same answers for agents: a server of the Model Context Protocol, so that an agent can ask about itself.

    tools         which questions there are, and who answers each
    arguments     what may be asked     → input schemas
    documents     what is answered      → output schemas
    surroundings  settings, environment and present of a call
    server        the protocol: tools described, calls answered, errors as sentences

It needs the extra `mcp`, whose packages are imported nowhere else. The answers are those of the commands, and the
functions behind them are the same.
"""

from __future__ import annotations

from sessionlog.errors import MissingExtra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def serve(say: Callable[[str], None], *, env: Mapping[str, str] | None = None, allow_paths: bool = False) -> None:
    """Serve on stdin and stdout until stdin ends.

    Args:
        say: Told in one sentence of what a client is not.
        env: The environment; the process's when None.
        allow_paths: A client may name logs anywhere, not only where agents write.

    Raises:
        MissingExtra: The official SDK is not installed, or is older than 2.
    """
    try:
        import mcp.server  # noqa: F401, PLC0415 - an extra
        import mcp_types  # noqa: F401, PLC0415 - what versions before 2 had not
    except ImportError as error:
        raise MissingExtra("the MCP server needs: pip install 'sessionlog[mcp]'") from error
    from sessionlog.mcp_server.server import build_server, run_stdio  # noqa: PLC0415 - only where the extra is there

    run_stdio(build_server(env=env, say=say, allow_paths=allow_paths))
