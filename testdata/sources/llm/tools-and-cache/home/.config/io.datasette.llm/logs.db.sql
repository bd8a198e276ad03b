CREATE TABLE _llm_migrations (name TEXT PRIMARY KEY, applied_at TEXT);
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT, options_json TEXT,
  response TEXT, response_json TEXT, conversation_id TEXT REFERENCES conversations(id), duration_ms INTEGER,
  datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT, schema_id TEXT, resolved_model TEXT);
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, arguments TEXT, tool_call_id TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, output TEXT,
  tool_call_id TEXT, instance_id INTEGER, exception TEXT);
INSERT INTO conversations VALUES ('01conva', 'What is 1+2?', 'gpt-4o-mini');
INSERT INTO responses (id, model, prompt, system, response, conversation_id, duration_ms, datetime_utc, input_tokens, output_tokens, token_details, resolved_model) VALUES
('01r1', 'gpt-4o-mini', 'What is 1+2?', 'Be brief.', '', '01conva', 1500, '2026-11-20T10:00:00.123456+00:00', 1000, 20,
  '{"prompt_tokens_details": {"cached_tokens": 400}, "completion_tokens_details": {"reasoning_tokens": 5}}', 'gpt-4o-mini-2024-07-18'),
('01r2', 'gpt-4o-mini', '', 'Be brief.', 'It is 3; the site is down.', '01conva', 500, '2026-11-20T10:00:03+00:00', 1100, 10, NULL, 'gpt-4o-mini-2024-07-18');
INSERT INTO tool_calls VALUES (1, '01r1', 1, 'add', '{"a": 1, "b": 2}', 'call_1'), (2, '01r1', 2, 'fetch', '{"url": "https://example.com"}', 'call_2');
INSERT INTO tool_results VALUES (1, '01r2', 1, 'add', '3', 'call_1', NULL, NULL), (2, '01r2', 2, 'fetch', 'Error: timed out', 'call_2', NULL, 'TimeoutError: timed out');
