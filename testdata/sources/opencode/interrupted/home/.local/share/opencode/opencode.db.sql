CREATE TABLE session(id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE INDEX part_message ON part(message_id);
INSERT INTO session VALUES('ses_i','p1',NULL,'/w/api','A title','7.7.7',1767312000000,1767312000000);
INSERT INTO message VALUES('m1','ses_i',1767312000010,1767312000010,'{"role":"user","time":{"created":1767312000010},"agent":"code","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO part VALUES('p1','m1','ses_i',1767312000000,1767312000000,'{"type":"text","text":"\"Something slow\""}');
INSERT INTO message VALUES('m2','ses_i',1767312001000,1767312001000,'{"role":"assistant","mode":"code","agent":"code","path":{"cwd":"/w/api","root":"/w/api"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1767312001000}}');
