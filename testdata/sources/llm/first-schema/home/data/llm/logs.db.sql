CREATE TABLE _llm_migrations (name TEXT PRIMARY KEY, applied_at TEXT);
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT, options_json TEXT,
  response TEXT, response_json TEXT, conversation_id TEXT, duration_ms INTEGER, datetime_utc TEXT);
INSERT INTO responses VALUES ('01x', 'gpt-3.5-turbo', 'Ten names for a pelican', NULL, NULL, NULL, 'Percy', NULL, '01gone', 900, '2023-07-15T10:00:00.5'),
 ('01y', 'gpt-3.5-turbo', 'Alone', NULL, NULL, NULL, 'Yes', NULL, NULL, NULL, '2023-07-15T11:00:00');
