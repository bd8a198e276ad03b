CREATE TABLE session(id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE INDEX part_message ON part(message_id);
INSERT INTO session VALUES('ses_a','p1',NULL,'/w/api','A title','1.2.27',1767312000000,1767312000000);
INSERT INTO message VALUES('m1','ses_a',1767312000010,1767312000010,'{"role":"user","time":{"created":1767312000010},"agent":"code","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO part VALUES('p1','m1','ses_a',1767312000000,1767312000000,'{"type":"text","text":"Think"}');
INSERT INTO message VALUES('m2','ses_a',1767312001000,1767312001000,'{"role":"assistant","mode":"code","agent":"code","path":{"cwd":"/w/api","root":"/w/api"},"cost":0.02,"tokens":{"total":180,"input":100,"output":50,"reasoning":20,"cache":{"read":30,"write":0}},"modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1767312001000,"completed":1767312002000},"finish":"stop"}');
INSERT INTO message VALUES('m3','ses_a',1767312003000,1767312003000,'{"role":"assistant","mode":"code","agent":"code","path":{"cwd":"/w/api","root":"/w/api"},"cost":0.02,"tokens":{"total":200,"input":100,"output":50,"reasoning":20,"cache":{"read":30,"write":0}},"modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1767312003000,"completed":1767312004000},"finish":"stop"}');
