"""Anything that answers, behind one protocol: functions, pydantic-ai agents, OpenAI and Anthropic clients."""
