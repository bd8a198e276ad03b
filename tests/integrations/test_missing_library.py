"""An integration whose library is not installed says so in one sentence, when it is imported."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name == sys.argv[2]:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
try:
    __import__(f"sessionlog.integrations.{sys.argv[1]}")
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(("integration", "module", "sentence"), [
    ("anthropic", "anthropic", "anthropic is not installed: pip install 'anthropic>=2.12'"),
    ("langchain", "langchain_core", "langchain-core is not installed: pip install langchain-core"),
    ("openai_agents", "agents", "openai-agents is not installed: pip install openai-agents"),
    ("otel", "opentelemetry", "opentelemetry-sdk is not installed: pip install opentelemetry-sdk"),
    ("pydantic_ai", "pydantic_ai", "pydantic-ai is not installed: pip install pydantic-ai-slim"),
])  # fmt: skip
def test_without_the_library_there_is_one_sentence(integration, module, sentence):
    """It names what to install."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, integration, module], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"MissingExtra {sentence}\n"
