"""Names of providers as agents write them: what they mean, and which of them never bill by a list.

Data, with a reason for each entry. Names are compared in lower case with `-` for `_` and blanks.
"""

from __future__ import annotations

from types import MappingProxyType

NOT_GIVEN = frozenset({"", "unknown", "none", "null"})
"""Values of a record's provider that mean it was not logged."""

GATEWAY = ""
"""The alias of names that contain a vendor's but only stand for its protocol."""

PROVIDER_ALIASES = MappingProxyType(
    {
        # Agents that are named as the provider: they bill by their vendor's list.
        "claude": "anthropic",
        "claude-code": "anthropic",
        "codex": "openai",
        "openai-codex": "openai",
        "chatgpt": "openai",
        "gemini": "google",
        "gemini-cli": "google",
        "google-gemini-cli": "google",
        "kimi": "moonshotai",
        "kimi-cli": "moonshotai",
        "kimi-code": "moonshotai",
        "grok": "x-ai",
        # Clouds under the names of their SDKs.
        "bedrock": "aws",
        "amazon-bedrock": "aws",
        "aws-bedrock": "aws",
        "azure-openai": "azure",
        "azure-openai-responses": "azure",
        "azure-ai": "azure",
        "azure-ai-foundry": "azure",
        "azure-cognitive-services": "azure",
        "vertex": "google",
        "vertexai": "google",
        "google-vertex-anthropic": "google",
        "anthropic-vertex": "google",
        # Vendors written another way.
        "fireworks-ai": "fireworks",
        "togetherai": "together",
        "moonshot": "moonshotai",
        "mistralai": "mistral",
        "z-ai": "zai",
        "z.ai": "zai",
        "perplexity-ai": "perplexity",
        "deepseek-ai": "deepseek",
        "cloudflare-workers-ai": "cloudflare",
        # A protocol, not a vendor: any endpoint can be behind it.
        "openai-compat": GATEWAY,
        "openai-compatible": GATEWAY,
        "openai-like": GATEWAY,
        "anthropic-compat": GATEWAY,
        "anthropic-compatible": GATEWAY,
        "google-compatible": GATEWAY,
    }
)

# Programs and addresses that serve models on the user's own machines: only the user knows what a token costs there.
_LOCAL_NAMES = (
    "0.0.0.0",  # noqa: S104 - recognised in a log, never bound
    "127.0.0.1",
    "aphrodite",
    "docker-model-runner",
    "ds4",
    "exo",
    "foundry-local",
    "gpt4all",
    "jan",
    "koboldcpp",
    "ktransformers",
    "lemonade",
    "llama-cpp",
    "llama-server",
    "llama-swap",
    "llama.cpp",
    "llamabarn",
    "llamacpp",
    "llamafile",
    "lm-studio",
    "lmdeploy",
    "lmstudio",
    "local",
    "localai",
    "localhost",
    "lucebox",
    "mistral.rs",
    "mistralrs",
    "mlx",
    "mlx-lm",
    "mlx-vlm",
    "ollama",
    "omlx",
    "oobabooga",
    "ramalama",
    "rapid-mlx",
    "sglang",
    "tabbyapi",
    "tensorrt-llm",
    "text-generation-inference",
    "text-generation-webui",
    "tgi",
    "trtllm",
    "vllm",
    "xinference",
)
_IN_WORDS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")


def normal_name(provider: str) -> str:
    """Return a provider's name as the tables above spell it."""
    return "-".join(provider.lower().replace("_", " ").split())


def is_local(provider: str) -> bool:
    """Whether a provider, by its normal name, is a local model server, which no price list covers."""
    # Whole words, so that `my-vllm-2` is local and `jantar` is not.
    return any(_has_word(provider, name) for name in _LOCAL_NAMES if name in provider)


def _has_word(text: str, word: str) -> bool:
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if _IN_WORDS.isdisjoint(text[max(0, start - 1) : start]) and _IN_WORDS.isdisjoint(text[end : end + 1]):
            return True
        start = text.find(word, start + 1)
    return False
