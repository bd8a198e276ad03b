CREATE TABLE session(id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE INDEX part_message ON part(message_id);
INSERT INTO session VALUES('ses_5','p1',NULL,'/w/api','A title','1.2.10',1767312000000,1767312000000);
INSERT INTO message VALUES('msg_1ses_5','ses_5',1767312000050,1767312000050,'{"role":"user","time":{"created":1767312000050},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO message VALUES('msg_2ses_5','ses_5',1767312000051,1767312000051,'{"role":"assistant","parentID":"msg_u","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/w/api","root":"/w/api"},"cost":0.02,"tokens":{"input":50,"output":1,"reasoning":0,"cache":{"read":0,"write":0}},"time":{"created":1767312000051,"completed":1767312000052},"finish":"stop"}');
