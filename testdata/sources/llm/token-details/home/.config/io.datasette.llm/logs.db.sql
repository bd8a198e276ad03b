CREATE TABLE _llm_migrations (name TEXT PRIMARY KEY, applied_at TEXT);
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT, options_json TEXT,
  response TEXT, response_json TEXT, conversation_id TEXT REFERENCES conversations(id), duration_ms INTEGER,
  datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT, schema_id TEXT, resolved_model TEXT);
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, arguments TEXT, tool_call_id TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, output TEXT,
  tool_call_id TEXT, instance_id INTEGER, exception TEXT);
INSERT INTO responses (id, model, prompt, system, response, conversation_id, duration_ms, datetime_utc, input_tokens, output_tokens, token_details, resolved_model) VALUES
('01a', 'anthropic/claude-sonnet-4-5', 'p', NULL, 'r', 'c', 10, '2026-11-20T10:00:00', 10, 100,
  '{"cache_creation_input_tokens": 300, "cache_read_input_tokens": 2000, "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 100}, "output_tokens_details": {"thinking_tokens": 40}}', NULL),
('01b', 'gemini/gemini-2.5-pro', 'p', NULL, 'r', 'c', 10, '2026-11-20T10:01:00', 500, 90, '{"candidatesTokenCount": 30, "thoughtsTokenCount": 60, "cachedContentTokenCount": 200}', NULL),
('01c', 'gemini/gemini-2.5-pro', 'p', NULL, 'r', 'c', 10, '2026-11-20T10:02:00', 50, 7, '{"thoughtsTokenCount": 60}', NULL),
('01d', 'gemini-1.5-pro-latest', 'p', NULL, 'r', 'c', 10, '2026-11-20T10:03:00', 5, 60, '{"thoughtsTokenCount": 60}', NULL),
('01e', 'openrouter/openai/gpt-5', 'p', NULL, 'r', 'c', 10, '2026-11-20T10:04:00', 100, 9, '{"prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 20}, "cost": 0.01}', NULL),
('01f', 'gpt-oss:20b', 'p', NULL, 'r', 'c', 10, '2026-11-20T10:05:00', 3, 2, NULL, NULL),
('01g', 'mlx-community/Llama-3.2-3B', 'p', NULL, 'r', 'c', 10, '2026-11-20T10:06:00', 4, 1, NULL, NULL);
