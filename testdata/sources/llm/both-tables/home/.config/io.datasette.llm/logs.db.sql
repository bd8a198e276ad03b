CREATE TABLE _llm_migrations (name TEXT PRIMARY KEY, applied_at TEXT);
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT, options_json TEXT,
  response TEXT, response_json TEXT, conversation_id TEXT REFERENCES conversations(id), duration_ms INTEGER,
  datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT, schema_id TEXT, resolved_model TEXT);
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, arguments TEXT, tool_call_id TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, output TEXT,
  tool_call_id TEXT, instance_id INTEGER, exception TEXT);
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT, datetime_utc TEXT);
CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT, provider_metadata TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, tool_name TEXT, text TEXT, payload TEXT);
CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT, datetime_utc TEXT, source TEXT);
CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT, model TEXT,
  resolved_model TEXT, options_json TEXT, schema_id TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT,
  duration_ms INTEGER, datetime_utc TEXT, response_json TEXT);
INSERT INTO conversations VALUES ('01s', 'Old words', 'gpt-5');
INSERT INTO threads VALUES ('01s', 'Old words', 'm2', NULL, NULL);
INSERT INTO messages VALUES ('m1', NULL, 'user', NULL), ('m2', 'm1', 'assistant', NULL);
INSERT INTO parts VALUES (1, 'm1', 0, 'text', NULL, 'New words', NULL), (2, 'm2', 0, 'text', NULL, 'Answer', NULL);
INSERT INTO turns VALUES ('01two', '01s', 'm1', 'm2', 'gpt-5', NULL, NULL, NULL, 20, 2, NULL, 10, '2026-11-20T10:01:00+00:00', NULL),
 (NULL, '01s', 'm1', 'm2', 'gpt-5', NULL, NULL, NULL, 999, 9, NULL, 10, '2026-11-20T10:01:00+00:00', NULL);
INSERT INTO responses (id, model, prompt, system, response, conversation_id, duration_ms, datetime_utc, input_tokens, output_tokens, token_details, resolved_model) VALUES
('01one', 'gpt-5', 'Old words', NULL, 'Yes', '01s', 10, '2026-11-20T10:00:00+00:00', 10, 1, NULL, NULL),
('01two', 'gpt-5', 'New words', NULL, 'Answer', '01s', 10, '2026-11-20T10:01:00+00:00', 20, 2, NULL, NULL);
