CREATE TABLE chat(id TEXT, body TEXT);
INSERT INTO chat VALUES('1','{}');
CREATE TABLE message(id TEXT, text TEXT);
CREATE TABLE session(id TEXT);
