"""Spellings: other spellings of a model's name, the closest first.

Logs decorate names: dates of a snapshot, regions and versions of a cloud, a window size in brackets. Only decoration
is removed, one kind at a time. A tag behind a colon stays (`:free` and `:8b` name other models), except Bedrock's `:0`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_MAX_FORMS = 16  # an honest name has at most a handful; a hostile one must not cost more

_DATE = r"20\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])"
_COMPACT_DATE = re.compile(r"-(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")
_DATE_SUFFIX = re.compile(rf"-{_DATE}$")
_WINDOW_SUFFIX = re.compile(r"\[[^\[\]]*\]$")
_RESOURCE_PATH = re.compile(r"^(?:models/|(?:projects/.*/)?publishers/[^/]+/models/|arn:aws:bedrock:[^/]*/)")
_STAGE_SUFFIX = re.compile(r"-(?:latest|preview)$")
_VERTEX_VERSION = re.compile(r"@(?:default|latest|\d+)$")

# us.anthropic.claude-sonnet-4-20250514-v1:0 = region, vendor, model, version.
_BEDROCK = re.compile(
    r"(?:(?:us|eu|ap|apac|jp|au|ca|sa|me|il|us-gov|global|regional)\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|writer|xai|zai)"
    r"\.(?P<model>[^.].*?)(?:-v\d+(?::\w+)*|:\d+)?"
)


def is_bedrock_name(name: str) -> bool:
    """Whether a name has the form that only Bedrock uses: `us.anthropic.…-v1:0` or an ARN."""
    return name.startswith("arn:aws:bedrock:") or _BEDROCK.fullmatch(name) is not None


def spellings(name: str, *, vendor: str = "") -> list[str]:
    """Return the spellings under which a lower-case model name may be listed, the name itself first.

    A leading `vendor/` is removed, too (`openai/gpt-5` at openai).
    """
    forms = [name]
    for simplify in (lambda form: form.removeprefix(f"{vendor}/") if vendor else form, *_STEPS):
        forms += [plain for form in forms[:_MAX_FORMS] if (plain := simplify(form)) and plain != form]
    forms = list(dict.fromkeys(forms))[:_MAX_FORMS]
    # Some models are listed only as a preview, but logged without that suffix.
    bare = [form for form in forms if ":" not in form]
    return [*forms, *(f"{form}{stage}" for stage in ("-preview", "-latest") for form in bare)]


def has_tag(name: str) -> bool:
    """Whether a name ends in a colon and a word: a size at Ollama, a price plan at OpenRouter."""
    return ":" in name.rsplit("/", 1)[-1] and not is_bedrock_name(name)


def _dash_dates(name: str) -> str:
    return _COMPACT_DATE.sub(r"-\1-\2-\3", name)


def _plain_bedrock(name: str) -> str:
    found = _BEDROCK.fullmatch(name)
    return found["model"] if found else name


def _dash_vertex(name: str) -> str:
    return name.replace("@", "-")


def _remover(pattern: re.Pattern[str]) -> Callable[[str], str]:
    return lambda name: pattern.sub("", name)


_STEPS: tuple[Callable[[str], str], ...] = (
    _dash_dates,
    _remover(_WINDOW_SUFFIX),
    _remover(_RESOURCE_PATH),
    _plain_bedrock,
    _dash_vertex,
    _remover(_VERTEX_VERSION),
    _remover(_DATE_SUFFIX),
    _remover(_STAGE_SUFFIX),
)
