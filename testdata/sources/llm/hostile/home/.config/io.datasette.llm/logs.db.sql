CREATE TABLE _llm_migrations (name TEXT PRIMARY KEY, applied_at TEXT);
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT, options_json TEXT,
  response TEXT, response_json TEXT, conversation_id TEXT REFERENCES conversations(id), duration_ms INTEGER,
  datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT, schema_id TEXT, resolved_model TEXT);
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, arguments TEXT, tool_call_id TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, output TEXT,
  tool_call_id TEXT, instance_id INTEGER, exception TEXT);
INSERT INTO responses (id, model, prompt, system, response, conversation_id, duration_ms, datetime_utc, input_tokens, output_tokens, token_details, resolved_model) VALUES
('01a', NULL, NULL, NULL, NULL, 'c', NULL, NULL, NULL, NULL, NULL, NULL),
('01b', 'gpt-4o', X'6869ff', NULL, X'ff', 'c', 'soon', 'yesterday', -5, 2.0, 'not json', NULL),
('01c', 'gpt-4o', 'p', NULL, 'r', 'c', 5, 1795168800, '12', 1.5, '[1, null]', X'677074'),
('01d', 'gpt-4o', 'p', NULL, 'r', 'c', -1, '2026-11-20T10:00:00Z', 100, 10, '{"prompt_tokens_details": null, "thoughtsTokenCount": "x", "cache_creation": 7, "completion_tokens_details": []}', NULL),
('01e', 'gpt-4o', 'p', NULL, 'r', 'c', 1, '2026-11-20T10:00:00Z', 5, 1, '{"prompt_tokens_details": {"cached_tokens": 50}}', NULL);
INSERT INTO tool_calls VALUES (1, '01d', NULL, NULL, NULL, NULL), (2, '01d', NULL, 'run', '[1]', NULL), (3, '01d', NULL, 'run', '{', NULL), (4, NULL, NULL, 'lost', '{}', 'x');
INSERT INTO tool_results VALUES (1, '01e', NULL, 'run', NULL, NULL, NULL, ''), (2, '01e', NULL, 'run', X'c3a9', NULL, NULL, NULL), (3, '01e', NULL, NULL, NULL, 'never-called', NULL, 'x');
