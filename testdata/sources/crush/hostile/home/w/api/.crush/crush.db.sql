CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, message_count INTEGER NOT NULL DEFAULT 0, prompt_tokens INTEGER NOT NULL DEFAULT 0, completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0, updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL DEFAULT '[]', model TEXT, provider TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, finished_at INTEGER, is_summary_message INTEGER NOT NULL DEFAULT 0);
CREATE TABLE files (id TEXT, session_id TEXT, path TEXT, content TEXT, version TEXT);
INSERT INTO sessions (id, parent_session_id, title, prompt_tokens, completion_tokens, cost, updated_at, created_at) VALUES ('s1', NULL, 'Files', 6000, 90, 'dear', 1794304860, 1794304800);
INSERT INTO messages (id, session_id, role, parts, created_at, updated_at, finished_at) VALUES ('a', 's1', 'user', 'not json', 1794304800, 1794304800, NULL);
INSERT INTO messages (id, session_id, role, parts, created_at, updated_at, finished_at) VALUES ('b', 's1', 'assistant', '[5,{"type":["text"],"data":3},{"type":"text","data":{"text":7}}]', 1794304801, 1794304801, 1794304803);
INSERT INTO messages (id, session_id, role, parts, created_at, updated_at, finished_at) VALUES ('c', 's1', 'alien', '{"type":"text"}', 1794304802, 1794304802, NULL);
INSERT INTO sessions (id, parent_session_id, title, prompt_tokens, completion_tokens, cost, updated_at, created_at) VALUES ('s2', 'nobody', 'Files', 6000, 90, 0.5, 1794304860, 1794304810);
