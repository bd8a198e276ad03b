"""Structured answers: parse a model's JSON, and check it against the requested schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import FunctionType
from typing import Any

from sessionlog.conversation.turns.pieces import Reply, Response
from sessionlog.errors import AgentError, MissingExtra

_FENCED = re.compile(r"\A\s*```[A-Za-z0-9_-]*[ \t\r]*\n(.*?)\n?[ \t]*```\s*\Z", re.DOTALL)
_NO_SCHEMAS = (str, bytes, int, float, list, tuple, set, frozenset, FunctionType)
_MAX_LISTED = 3
"""Problems that an error message lists."""


def checked_schema(schema: Any) -> Any:
    """Check a schema before a request is sent, and return it; None becomes an empty one, which allows any JSON.

    Raises:
        TypeError: The schema is neither a type nor a JSON schema.
        ValueError: It is a dict, but no JSON schema.
        MissingExtra: pydantic (for a type) or jsonschema (for a JSON schema) is not installed.
    """
    if isinstance(schema, Mapping):
        if schema:
            _validator(schema)
    elif schema is not None:
        _load_adapter(schema)
    return {} if schema is None else schema


def with_output(reply: Reply | None, schema: Any, response: Response) -> Response:
    """Return a response with `output` parsed from its text, unless the last `reply` has it parsed by the agent."""
    if response.status == "cancelled":
        return response
    if reply is not None and reply.has_output:
        is_json = isinstance(schema, Mapping)
        return replace(response, output=check_output(response.output, schema)) if is_json else response
    return replace(response, output=read_output(response.text, schema))


def read_output(text: str, schema: Any) -> Any:
    """Return the value in an answer.

    Args:
        text: JSON, as it is or in a Markdown fence.
        schema: A pydantic model or any type; or a JSON schema. An empty one takes any JSON.

    Raises:
        AgentError: The text is not JSON, or does not match the schema: the message states where.
        ValueError: The JSON schema has a reference that cannot be resolved; nothing is fetched.
    """
    fenced = _FENCED.match(text)
    try:
        value = json.loads(fenced.group(1) if fenced else text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise AgentError(f"the answer is not JSON ({error}): {text[:200]!r}; it is kept in the session") from error
    return check_output(value, schema)


def check_output(value: Any, schema: Any) -> Any:
    """Return a JSON value converted to a type, or unchanged if a JSON schema allows it.

    Raises:
        AgentError: The value does not match.
        ValueError: As for `read_output`.
    """
    if isinstance(schema, Mapping):
        if schema:
            _check_value(value, schema)
        return value
    try:
        return _load_adapter(schema).validate_python(value)
    except ValueError as error:
        listed = getattr(error, "errors", None)
        problems = [f"{_path(one['loc'])}: {one['msg']}" for one in listed()] if listed is not None else [str(error)]
        raise _mismatch(problems) from error


def _check_value(value: Any, schema: Mapping[str, Any]) -> None:
    from referencing.exceptions import Unresolvable

    try:
        found = list(islice(_validator(schema).iter_errors(value), 100))
    except Unresolvable as error:
        raise ValueError(f"schema: {error}; references have to be inside the schema, nothing is fetched") from error
    if found:
        found.sort(key=lambda error: len(error.absolute_path))
        raise _mismatch([f"{error.json_path}: {error.message:.200}" for error in found])


def _mismatch(problems: Sequence[str]) -> AgentError:
    more = f"; and {len(problems) - _MAX_LISTED} more" if len(problems) > _MAX_LISTED else ""
    return AgentError(
        f"the answer does not match the schema: {'; '.join(problems[:_MAX_LISTED])}{more}. It is kept in the session"
    )


def _path(steps: Iterable[str | int]) -> str:
    """A place in a JSON value as JSONPath."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _validator(schema: Mapping[str, Any]) -> Any:
    try:
        from jsonschema import Draft202012Validator, SchemaError, validators
        from jsonschema_specifications import REGISTRY
    except ImportError as error:
        raise MissingExtra("a JSON schema needs jsonschema: pip install 'sessionlog[json]'") from error
    whole = dict(schema)
    make = validators.validator_for(whole, default=Draft202012Validator)
    try:
        make.check_schema(whole)
    except SchemaError as error:
        raise ValueError(f"schema: no JSON schema: {error.json_path}: {error.message:.200}") from error
    return make(whole, registry=REGISTRY)  # has the drafts' own schemas, and fetches nothing


def _load_adapter(schema: Any) -> Any:
    wrong = f"schema is {type(schema).__name__}; it is a type, as a pydantic model, or a JSON schema in a dict"
    if isinstance(schema, _NO_SCHEMAS):
        raise TypeError(wrong)
    try:
        from pydantic import PydanticUserError, TypeAdapter
    except ImportError as error:
        raise MissingExtra("a type as schema needs pydantic: pip install 'sessionlog[json]'") from error
    try:
        return TypeAdapter(schema)
    except (PydanticUserError, NameError) as error:
        raise TypeError(f"{wrong}: {error}") from error
