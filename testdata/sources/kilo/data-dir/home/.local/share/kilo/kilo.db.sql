CREATE TABLE session(id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE INDEX part_message ON part(message_id);
INSERT INTO session VALUES('ses_9','p1',NULL,'/w/api','A title','1.2.10',1767312000000,1767312000000);
INSERT INTO message VALUES('msg_z','ses_9',1767312000000,1767312000000,'{"role":"assistant","modelID":"gpt-5.2","providerID":"openai","mode":"build","agent":"build","path":{"cwd":"/w/api","root":"/w/api"},"cost":0,"tokens":{"input":900,"output":9,"reasoning":4,"cache":{"read":3,"write":0}},"time":{"created":1767312000000,"completed":1767312000500},"finish":"stop"}');
