"""Places: the paths of logs, the ledger and the settings, by environment variables or the platform's custom.

Every start needs these first, so this module imports little and opens nothing.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def state_home(env: Mapping[str, str]) -> str:
    """Return the folder for logs and other state, by XDG or the platform's custom."""
    return _base(env, "XDG_STATE_HOME", ".local", "state")


def data_home(env: Mapping[str, str]) -> str:
    """Return the folder for permanent data: the ledger and the archive."""
    return _base(env, "XDG_DATA_HOME", ".local", "share")


def config_home(env: Mapping[str, str]) -> str:
    """Return the folder for configuration."""
    return _base(env, "XDG_CONFIG_HOME", ".config")


def _base(env: Mapping[str, str], variable: str, *default: str) -> str:
    given = env.get(variable, "")
    if os.path.isabs(given):  # the XDG specification: relative paths are to be ignored
        return given
    if sys.platform == "win32":
        return env.get("LOCALAPPDATA") or os.path.expanduser(os.path.join("~", "AppData", "Local"))
    return os.path.join(user_home(env), *default)


def user_home(env: Mapping[str, str]) -> str:
    """Return the home folder of the user whose environment this is."""
    return env.get("HOME") or os.path.expanduser("~")


def session_directory(env: Mapping[str, str]) -> str:
    """Return the folder of sessionlog's own logs: `$SESSIONLOG_DIR`, else `$XDG_STATE_HOME/sessionlog/sessions`."""
    given = env.get("SESSIONLOG_DIR")
    return os.path.expanduser(given) if given else os.path.join(state_home(env), "sessionlog", "sessions")


def ledger_file(env: Mapping[str, str]) -> str:
    """Return the ledger's path: `$SESSIONLOG_LEDGER`, else `$XDG_DATA_HOME/sessionlog/ledger.sqlite`."""
    given = env.get("SESSIONLOG_LEDGER")
    return os.path.expanduser(given) if given else os.path.join(data_home(env), "sessionlog", "ledger.sqlite")


def config_file(env: Mapping[str, str]) -> str:
    """Return the path of the settings: `$SESSIONLOG_CONFIG`, else `$XDG_CONFIG_HOME/sessionlog/config.toml`."""
    return env.get("SESSIONLOG_CONFIG") or os.path.join(config_home(env), "sessionlog", "config.toml")
