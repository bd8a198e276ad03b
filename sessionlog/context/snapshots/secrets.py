"""Remove secrets from snapshots: no character of an API key may get into one, wherever the agent keeps it.

It hides the values of headers and of names such as `api_key`, texts in the formats that `events.redact` knows, and the
values that this process's environment has under such names. Objects in settings become the name of their type, because
clients hold keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from sessionlog.events.redact import redact_text

HIDDEN = "***"
_TOOL_KEYS = ("TAVILY_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN")
_SECRET_NAME = re.compile(
    r"(?i)(?:api|access|auth|private|secret|signing)[-_ ]?key|token$|secret|passw|auth$|authori[sz]ation|cookie"
    r"|credential|headers?$"
)
_SCHEMA_VALUES = frozenset({"const", "default", "enum", "example", "examples"})
_MIN_LENGTH = 8  # characters: shorter values may be ordinary words
_MAX_DEPTH = 32


class SecretFilter:
    """Hides secrets in texts and JSON values.

    Args:
        env: The environment with the secrets to hide, and with the keys of an agent's tools.
    """

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self._env = os.environ if env is None else env
        values = {value for name, value in self._env.items() if len(value) >= _MIN_LENGTH and _SECRET_NAME.search(name)}
        longest_first = sorted(values, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if values else None

    def text(self, text: str) -> str:
        """Return a text without the secrets in it."""
        return redact_text(self._values.sub(HIDDEN, text) if self._values else text)

    def settings(self, value: object) -> Any:
        """Return settings as a JSON value without secrets and objects."""
        return self._json(value, _MAX_DEPTH, is_schema=False)

    def schema(self, value: object) -> Any:
        """Return a JSON schema without the defaults and examples of properties that are named like secrets."""
        return self._json(value, _MAX_DEPTH, is_schema=True)

    def tool_keys(self) -> dict[str, str]:
        """Return which of the usual keys for tools are in the environment, with hidden values."""
        return {name: HIDDEN for name in _TOOL_KEYS if name in self._env}

    def _json(self, value: object, depth: int, *, is_schema: bool, is_secret: bool = False, key: str = "") -> Any:
        if is_schema and is_secret and key in _SCHEMA_VALUES:
            return HIDDEN
        is_secret = is_secret or _SECRET_NAME.search(key) is not None
        if value is None or isinstance(value, bool):
            return value
        if is_secret and not is_schema:
            return HIDDEN
        if isinstance(value, int | float):
            return value
        if isinstance(value, str):
            return self.text(value)
        if depth and isinstance(value, Mapping):
            return {
                self.text(str(name)): self._json(
                    item, depth - 1, is_schema=is_schema, is_secret=is_secret, key=str(name)
                )
                for name, item in value.items()
            }
        if depth and isinstance(value, list | tuple | set | frozenset):
            return [self._json(item, depth - 1, is_schema=is_schema, is_secret=is_secret) for item in value]
        return f"<{type(value).__name__}>"
