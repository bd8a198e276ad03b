CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE sessions (id TEXT PRIMARY KEY, model TEXT, started_at REAL, input_tokens INTEGER, output_tokens INTEGER);
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_calls TEXT, timestamp REAL);
INSERT INTO sessions (id, model, started_at, input_tokens, output_tokens) VALUES ('s1', 'hermes-4', 1794304800.5, 12, 3);
INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s1', 'user', 'hello', 1794304801.0);
INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s1', 'assistant', 'Hi.', 1794304802.0);
