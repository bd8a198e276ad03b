CREATE TABLE session(id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE INDEX part_message ON part(message_id);
INSERT INTO session VALUES('ses_h','p1',NULL,'/w/api','A title','1.2.10',1767312000000,1767312000000);
INSERT INTO message VALUES('msg_00','ses_h',1767312000000,1767312000000,'{"role":"user","time":{"created":1767312000000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO message VALUES('msg_01','ses_h',1767312000001,1767312000001,'{"role":"assistant","modelID":"m","providerID":"p","tokens":{"input": 10.0, "output": "5", "reasoning": null, "cache": null}, "cost": null, "time":{"created":1767312000.5,"completed":1767312001000000000}, "x": "\ud83d"}');
INSERT INTO message VALUES('msg_02','ses_h',1767312000002,1767312000002,'{"role":"assistant","parentID":"msg_u","modelID":null,"providerID":["x"],"mode":null,"agent":null,"path":{"cwd":"/w/api","root":"/w/api"},"cost":0.02,"tokens":{"input":-4,"output":7,"reasoning":0,"cache":{"read":1.5,"write":0}},"time":{"created":1767312000002,"completed":1767312000003},"finish":"stop"}');
INSERT INTO message VALUES('msg_03','ses_h',1767312000003,1767312000003,'not json at all');
INSERT INTO message VALUES('msg_04','ses_h',1767312000004,1767312000004,'[1,2]');
INSERT INTO message VALUES('msg_05','ses_h',1767312000005,1767312000005,'{"role":"assistant","tokens":[1],"time":"now","error":[],"path":7,"model":null}');
INSERT INTO message VALUES('msg_06','ses_h',1767312000006,1767312000006,'{"role":7,"time":null}');
INSERT INTO part VALUES('prt_1','msg_01','ses_h',1767312000000,1767312000000,'{"type":"tool","tool":null,"callID":7,"state":[]}');
INSERT INTO part VALUES('prt_2','msg_02','ses_h',1767312000000,1767312000000,'"tool"');
INSERT INTO part VALUES('prt_3','msg_00','ses_h',1767312000000,1767312000000,'{"type":"text","text":"Line one\nline two   three"}');
