CREATE TABLE _llm_migrations (name TEXT PRIMARY KEY, applied_at TEXT);
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT, datetime_utc TEXT);
CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT, provider_metadata TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, tool_name TEXT, text TEXT, payload TEXT);
CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT, datetime_utc TEXT, source TEXT);
CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT, model TEXT,
  resolved_model TEXT, options_json TEXT, schema_id TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT,
  duration_ms INTEGER, datetime_utc TEXT, response_json TEXT);
INSERT INTO threads VALUES ('01t', 'What is 1+2?', 'h6', NULL, '2026-11-20 10:00:00+00:00'), ('01fork', 'And 5?', 'h8', '01t', '2026-11-20 10:05:00+00:00');
INSERT INTO fragments VALUES (1, 'f', 'A long text.', NULL, 'book.txt');
INSERT INTO messages VALUES ('h0', NULL, 'system', NULL), ('h1', 'h0', 'user', NULL), ('h2', 'h1', 'assistant', NULL), ('h3', 'h2', 'tool', NULL),
 ('h4', 'h3', 'assistant', NULL), ('h5', 'h4', 'user', NULL), ('h6', 'h5', 'assistant', NULL), ('h7', 'h4', 'user', NULL), ('h8', 'h7', 'assistant', NULL);
INSERT INTO parts VALUES (1, 'h0', 0, 'text', NULL, 'Be brief.', NULL), (2, 'h1', 0, 'text', NULL, 'What is 1+2?', NULL),
 (3, 'h2', 0, 'reasoning', NULL, 'Add them.', NULL), (4, 'h2', 1, 'tool_call', 'add', NULL, '{"name": "add", "arguments": {"a": 1, "b": 2}, "tool_call_id": "c1"}'),
 (5, 'h3', 0, 'tool_result', 'add', NULL, '{"name": "add", "output": "3", "tool_call_id": "c1"}'), (6, 'h4', 0, 'text', NULL, 'Three.', NULL),
 (7, 'h5', 0, 'text', NULL, NULL, '{"text_ref": [{"fragment": 1}, {"literal": " Sum it up."}]}'), (8, 'h6', 0, 'text', NULL, 'Short.', NULL),
 (9, 'h7', 0, 'text', NULL, 'And 5?', NULL), (10, 'h8', 0, 'tool_call', 'add', NULL, '{"name": "add", "arguments": {"a": 3, "b": 5}, "tool_call_id": "c1"}');
INSERT INTO turns VALUES
 ('01a', '01t', 'h1', 'h2', 'gpt-5', 'gpt-5-2025-08-07', NULL, NULL, 100, 20, '{"input_tokens_details": {"cached_tokens": 40}, "output_tokens_details": {"reasoning_tokens": 8}}', 1000, '2026-11-20T10:00:00+00:00', NULL),
 ('01b', '01t', 'h3', 'h4', 'gpt-5', 'gpt-5-2025-08-07', NULL, NULL, 130, 5, NULL, 1000, '2026-11-20T10:00:02+00:00', NULL),
 ('01c', '01t', 'h5', 'h6', 'gpt-5', 'gpt-5-2025-08-07', NULL, NULL, 140, 6, NULL, 1000, '2026-11-20T10:01:00+00:00', NULL),
 ('01d', '01fork', 'h7', 'h8', 'gpt-5', 'gpt-5-2025-08-07', NULL, NULL, 150, 7, NULL, 1000, '2026-11-20T10:05:00+00:00', NULL);
