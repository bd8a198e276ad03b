"""What a request has besides its messages: the system text, and the schema of the wanted answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sessionlog.conversation.turns.pieces import Ask

Json = dict[str, Any]

_ONLY_JSON = "Answer with JSON and nothing else."


def system_text(ask: Ask) -> str:
    """Return the system text of a request: the session's, then that of the system messages in the history."""
    texts = [ask.system or "", *(message.text for message in ask.messages if message.role == "system")]
    return "\n\n".join(text for text in texts if text)


def object_schema(schema: Any) -> tuple[Json | None, str]:
    """Return a schema that a provider can enforce, or an instruction for the model; neither without a schema.

    Providers enforce objects only. An empty schema asks for any JSON.
    """
    if schema is None:
        return None, ""
    wanted = dict(schema) if isinstance(schema, Mapping) else _schema_of(schema)
    if wanted.get("type") == "object" and wanted.get("properties"):
        return wanted, ""
    return None, f"{_ONLY_JSON} Its JSON schema: {json.dumps(wanted)}" if wanted else _ONLY_JSON


def _schema_of(wanted: Any) -> Json:
    from pydantic import TypeAdapter  # noqa: PLC0415 - a schema that is a type needs it

    return TypeAdapter(wanted).json_schema()
