"""A structured answer: JSON that a model wrote, read as what was asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sessionlog.errors import AgentError, MissingExtra

_FENCED = re.compile(r"\A\s*```[A-Za-z0-9_-]*[ \t\r]*\n(.*?)\n?[ \t]*```\s*\Z", re.DOTALL)


def check_schema(schema: Any) -> None:
    """See that a schema can be used before anybody is asked.

    Raises:
        MissingExtra: A type needs pydantic, which is not installed.
    """
    if not isinstance(schema, Mapping):
        _adapter(schema)


def read_output(text: str, schema: Any) -> Any:
    """Return what an answer says.

    Args:
        text: JSON, as it is or in a Markdown fence.
        schema: A pydantic model or any type; or a JSON schema, which the model was given and which is not checked here.

    Raises:
        AgentError: It is not JSON, or not what was asked for; the answer stays in the history.
    """
    fenced = _FENCED.match(text)
    try:
        value = json.loads(fenced.group(1) if fenced else text, parse_constant=_refuse)
    except ValueError as error:
        raise AgentError(f"the answer is not JSON ({error}): {text[:200]!r}; it is kept in the session") from error
    return value if isinstance(schema, Mapping) else checked(value, schema)


def checked(value: Any, schema: Any) -> Any:
    """Return a JSON value as the type that was asked for.

    Raises:
        AgentError: It is none.
    """
    try:
        return _adapter(schema).validate_python(value)
    except ValueError as error:
        raise AgentError(f"the answer is not what was asked for: {error}; it is kept in the session") from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


def _adapter(schema: Any) -> Any:
    try:
        from pydantic import TypeAdapter  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingExtra(
            "a type as schema needs pydantic: pip install pydantic; a JSON schema needs nothing"
        ) from error
    return TypeAdapter(schema)
