"""Find the installed tokenizer of a model by the model's name.

Two packages are supported. splintr (the extra `tokens`) contains its vocabularies. tiktoken downloads them, also again
if a file is damaged; so it is used only if the undamaged file is in its cache. Nothing here uses the network, and a
package is imported only when a text is counted for a model that needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from sessionlog.context.windows import plain_names
from sessionlog.files import read_small

Tokenize = Callable[[str], int]
"""Text → number of tokens; raises UnicodeError for unpaired surrogates."""

_VOCABULARIES = {
    "cl100k_base": ("cl100k-base", "gpt-3-5-turbo", "gpt-35-turbo", "gpt-4", "text-embedding-3", "text-embedding-ada"),
    "o200k_base": (
        "o200k-base",
        "chatgpt-4o",
        "codex-mini",
        "gpt-4-1",
        "gpt-4-5",
        "gpt-4-o",
        "gpt-4o",
        "gpt-5",
        "o1",
        "o3",
        "o4",
    ),
    "gpt-oss": ("gpt-oss",),
    "deepseek_v3": ("deepseek-r1", "deepseek-v3"),
    "gemma3": ("gemma-3",),
    "gemma4": ("gemma-4",),
    "glm4": ("glm-4-32b", "glm-4-5", "glm-4-5v", "glm-4-9b"),
    "kimi_k2": ("kimi-k2",),
    "kimi_k3": ("kimi-k3",),
    "llama3": ("llama-3", "llama3", "meta-llama-3"),
    "phi4": ("phi-4",),
    "qwen3": ("qwen2", "qwen3"),
    # Not these: later versions, models with another vocabulary under the same name, and distilled models.
    "": (
        "deepseek-r1-0528-qwen3",
        "deepseek-r1-distill",
        "kimi-k3-1",
        "phi-4-mini",
        "phi-4-multimodal",
        "qwen3-5",
        "qwen3-6",
        "qwen3-7",
        "qwen3-8",
        "qwen3-9",
        "qwen3-max",
    ),
}
_FAMILIES = {family: vocabulary for vocabulary, families in _VOCABULARIES.items() for family in families}

# The vocabularies of tiktoken and the checksums of their files.
_TIKTOKEN = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
_TIKTOKEN_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"  # hashed, never opened
_MAX_VOCABULARY = 1 << 24


def find_tokenizer(model: str) -> Tokenize | None:
    """Return the installed tokenizer of a model; None if there is none."""
    vocabulary = vocabulary_of(model)
    return _load(vocabulary) if vocabulary else None


@lru_cache(maxsize=256)
def vocabulary_of(model: str) -> str:
    """Return the vocabulary of a model, whose name may be in any spelling; "" if it is unknown or not public."""
    for plain in plain_names(model.strip().lower()):
        parts = plain.split("-")
        for count in range(len(parts), 0, -1):  # the longest family wins: gpt-4-1 is not gpt-4
            family = "-".join(parts[:count])
            if family in _FAMILIES:
                return _FAMILIES[family]
    return ""


@lru_cache(maxsize=256)
def is_claude(model: str) -> bool:
    """Whether a model is one of Anthropic's; its name may be in any spelling."""
    return any(plain.startswith("claude-") for plain in plain_names(model.strip().lower()))


@cache
def _load(vocabulary: str) -> Tokenize | None:
    return _splintr(vocabulary) or _tiktoken(vocabulary)


def _splintr(vocabulary: str) -> Tokenize | None:
    try:
        return _counter(import_module("splintr").Tokenizer.from_pretrained(vocabulary))
    except (ImportError, ValueError):  # not installed, or a version without this vocabulary
        return None


def _tiktoken(vocabulary: str) -> Tokenize | None:
    from hashlib import sha1, sha256

    checksum = _TIKTOKEN.get(vocabulary)
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    if checksum is None or not folder:
        return None
    name = sha1(_TIKTOKEN_URL.format(vocabulary).encode(), usedforsecurity=False).hexdigest()
    try:
        content = read_small(os.path.join(folder, name), _MAX_VOCABULARY)
        if content is None or sha256(content).hexdigest() != checksum:
            return None
        return _counter(import_module("tiktoken").get_encoding(vocabulary))
    except (ImportError, OSError, ValueError):
        return None


def _counter(tokenizer: Any) -> Tokenize:
    encode = tokenizer.encode_ordinary  # text, even where it looks like a special token
    return lambda text: len(encode(text))
