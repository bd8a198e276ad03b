"""Model adapters behind one protocol: functions, pydantic-ai agents, OpenAI and Anthropic clients."""
