"""Settings: one frozen value from command-line flags, the environment and config.toml, in this order of preference.

There is no project config file, because a repository is not trusted. Nothing here is global or mutable: the command
line (or a caller of the Python API) loads a value once and passes it on.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from sessionlog import files
from sessionlog.errors import InvalidSettings
from sessionlog.places import (
    config_file,
    config_home,
    data_home,
    ledger_file,
    session_directory,
    state_home,
    user_home,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = [
    "Settings",
    "config_home",
    "data_home",
    "ledger_file",
    "load_settings",
    "parse_prices",
    "session_directory",
    "state_home",
    "user_home",
]

_TYPES = {
    "session_dir": str, "ledger": str, "timezone": str, "prices": dict, "aliases": dict, "budgets": dict, "guard": dict,
    "currency": dict,
}  # fmt: skip


class Settings(NamedTuple):
    """The user's settings.

    Attributes:
        session_dir: The folder of sessionlog's own logs.
        ledger_path: The ledger's file.
        config_path: The path of the config file, which may not exist.
        timezone: IANA name or `local`; None leaves the choice to the command.
        prices: The `[prices]` table, and the `[aliases]`, which are names, unchecked; `pricing.PriceBook.load` checks
            them.
        budgets: The `[budgets]` table, unchecked; `analytics.budgets.rules.parse_budgets` checks it.
        guard: The `[guard]` table, unchecked; `guard.limits.parse_limits` checks it.
        currency: The `[currency]` table, unchecked; `render.currency.parse_currency` checks it.
    """

    session_dir: str
    ledger_path: str
    config_path: str
    timezone: str | None = None
    prices: Mapping[str, Any] = {}
    budgets: Mapping[str, Any] = {}
    guard: Mapping[str, Any] = {}
    currency: Mapping[str, Any] = {}


def load_settings(env: Mapping[str, str] | None = None) -> Settings:
    """Read environment and config.toml (`$SESSIONLOG_CONFIG` names another file).

    Args:
        env: The environment; the process's when None.

    Raises:
        InvalidSettings: The file is not TOML, has unknown keys, or a value has the wrong type.
        LogNotReadable: The file exists but cannot be read.
    """
    env = os.environ if env is None else env
    path = config_file(env)
    content = files.read_small(path)
    config = _parse(path, content) if content is not None else {}
    directory = env.get("SESSIONLOG_DIR") or config.get("session_dir")
    ledger = env.get("SESSIONLOG_LEDGER") or config.get("ledger")
    return Settings(
        session_dir=os.path.expanduser(directory) if directory else session_directory(env),
        ledger_path=os.path.expanduser(ledger) if ledger else ledger_file(env),
        config_path=path,
        timezone=env.get("SESSIONLOG_TZ") or config.get("timezone"),
        prices={**config.get("prices", {}), **config.get("aliases", {})},
        budgets=config.get("budgets", {}),
        guard=config.get("guard", {}),
        currency=config.get("currency", {}),
    )


def _parse(path: str, content: bytes) -> dict[str, Any]:
    import tomllib

    try:
        config = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # `TOMLDecodeError` and `UnicodeDecodeError` are a ValueError
        raise InvalidSettings(f"{path}: not TOML ({error})") from error
    unknown = sorted(config.keys() - _TYPES.keys())
    if unknown:
        raise InvalidSettings(f"{path}: unknown key {unknown[0]!r}; known are {', '.join(sorted(_TYPES))}")
    for key, kind in _TYPES.items():
        if key in config and not isinstance(config[key], kind):
            raise InvalidSettings(f"{path}: {key} must be a {'table' if kind is dict else 'string'}")
    for key, target in config.get("aliases", {}).items():
        if not isinstance(target, str):
            raise InvalidSettings(f'{path}: aliases."{key}" must be a string, "vendor/model"; quote a key with a dot')
        if key in config.get("prices", {}):
            raise InvalidSettings(f'{path}: "{key}" has a price and an alias; remove one of them')
    return config


def parse_prices(path: str, content: bytes) -> Mapping[str, Any]:
    """Read a file of prices, TOML or JSON: a `prices` table, or the table itself.

    Raises:
        InvalidSettings: It is neither TOML nor JSON, or not a table.
    """
    import json
    import tomllib

    try:
        text = content.decode("utf-8-sig")
        table = json.loads(text) if path.endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSettings(f"{path}: neither TOML nor JSON ({error})") from error
    table = table.get("prices", table) if isinstance(table, dict) else table
    if not isinstance(table, dict):
        raise InvalidSettings(f'{path}: expected a table of prices, such as [prices."vllm/qwen3.6-27b"]')
    return table
