PRAGMA application_id = 1582633158;
PRAGMA user_version = 4;
BEGIN TRANSACTION;
CREATE TABLE all_sessions (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    session TEXT NOT NULL,
    place TEXT NOT NULL,
    path TEXT NOT NULL,
    parent TEXT NOT NULL,
    part INTEGER NOT NULL,
    start_ns INTEGER,
    last_ns INTEGER,
    end_status TEXT,
    project TEXT NOT NULL,
    harness TEXT NOT NULL,
    route TEXT NOT NULL,
    duration_ms INTEGER,
    prompt TEXT NOT NULL,
    error TEXT NOT NULL,
    metadata TEXT NOT NULL,
    turns INTEGER,
    last_turn_ns INTEGER,
    counted INTEGER NOT NULL,
    archived INTEGER NOT NULL,
    elsewhere INTEGER NOT NULL DEFAULT 0,
    UNIQUE (source, session, place)
) STRICT;
INSERT INTO "all_sessions" VALUES(1,'native','n2','/HOME/s/deep','/HOME/s/deep/n2.jsonl','',0,1794304956000000000,1794305077000000000,NULL,'/w/n','unknown','unknown',NULL,'number n2','','{}',1,1794304956000000000,1,0,0);
INSERT INTO "all_sessions" VALUES(2,'native','n1','/HOME/s','/HOME/s/n1.jsonl','',0,1794304801000000000,1794304955000000000,NULL,'/w/n','unknown','unknown',NULL,'number n1','','{}',1,1794304801000000000,1,0,0);
INSERT INTO "all_sessions" VALUES(3,'claude-code','11111111-1111-4111-8111-111111111111','','/HOME/c/projects/-w-a/11111111-1111-4111-8111-111111111111.jsonl','',0,1794305100000000000,1794305343000000000,NULL,'/w/a','claude-code','unknown',NULL,'do 3','','{}',1,1794305166000000000,1,0,0);
INSERT INTO "all_sessions" VALUES(4,'claude-code','22222222-2222-4222-8222-222222222222','','/HOME/c/projects/-w-a/22222222-2222-4222-8222-222222222222.jsonl','',0,1794305366000000000,1794305609000000000,'error','/w/a','claude-code','unknown',NULL,'do 3','so','{}',1,1794305521000000000,1,0,0);
INSERT INTO "all_sessions" VALUES(5,'codex','019a0000-0001-7000-8000-000000000001','','/HOME/x/sessions/2026/11/10/rollout-2026-11-10T10-00-00-019a0000-0001-7000-8000-000000000001.jsonl','',0,1794305610000000000,1794306052000000000,NULL,'/w/x','codex','unknown',NULL,'','','{"context_window":272000}',0,NULL,1,0,0);
INSERT INTO "all_sessions" VALUES(6,'codex','019a0000-0002-7000-8000-000000000002','','/HOME/x/sessions/2026/11/10/rollout-2026-11-10T10-00-00-019a0000-0002-7000-8000-000000000002.jsonl','',0,1794305787000000000,1794305985000000000,NULL,'/w/x','codex','unknown',NULL,'','','{"context_window":272000}',0,NULL,1,0,0);
CREATE TABLE calls (
    file_id INTEGER NOT NULL,
    n INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    name_id INTEGER NOT NULL,
    key INTEGER NOT NULL,
    superseded_by TEXT,
    counts INTEGER NOT NULL,
    time_ns INTEGER,
    finished INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    duration_ms REAL,
    duration_bucket INTEGER,
    output_bytes INTEGER NOT NULL,
    PRIMARY KEY (file_id, n)
) STRICT, WITHOUT ROWID;
INSERT INTO "calls" VALUES(2,0,2,1,230658453666328789,NULL,1,1794304845000000000,1,0,42.0,188,42);
INSERT INTO "calls" VALUES(2,1,2,1,-2748872119595647149,NULL,1,1794304878000000000,1,0,7.0,98,7);
INSERT INTO "calls" VALUES(2,2,2,2,4843449849483733672,NULL,1,1794304889000000000,1,0,25.0,162,25);
INSERT INTO "calls" VALUES(2,3,2,2,2300849006745137867,NULL,1,1794304900000000000,1,0,45.0,192,45);
INSERT INTO "calls" VALUES(2,4,2,2,-595892410566114167,NULL,1,1794304933000000000,1,0,47.0,194,47);
INSERT INTO "calls" VALUES(4,0,3,3,-1265097992526081892,NULL,1,1794305144000000000,0,0,NULL,NULL,0);
INSERT INTO "calls" VALUES(5,0,4,4,-8845090426624768076,NULL,1,1794305366000000000,0,0,NULL,NULL,0);
INSERT INTO "calls" VALUES(8,0,6,5,6477275641903634277,NULL,1,1794305853000000000,0,0,NULL,NULL,0);
CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    path ANY NOT NULL UNIQUE,
    source TEXT NOT NULL,
    parser INTEGER NOT NULL,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL DEFAULT 0,
    beside TEXT NOT NULL,
    settled INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    line INTEGER NOT NULL,
    head TEXT NOT NULL,
    print TEXT NOT NULL,
    prefix TEXT NOT NULL DEFAULT '',
    missing INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    problems INTEGER NOT NULL,
    named TEXT NOT NULL,
    checksum TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO "files" VALUES(1,'/HOME/s/deep/n2.jsonl','native',5,65024,2327529,1298,1700000007000000000,1795457247952142368,'',1,1298,9,'1298:daaabc42e900e49089c0ef20','1298:daaabc42e900e49089c0ef20','',0,1,0,'[]','');
INSERT INTO "files" VALUES(2,'/HOME/s/n1.jsonl','native',5,65024,2270988,1331,1700000005000000000,1795457247951507257,'',1,1331,9,'1331:5596a3194822537d609c120c','1331:5596a3194822537d609c120c','',0,1,0,'[]','');
INSERT INTO "files" VALUES(3,'/HOME/c/projects/-w-a/11111111-1111-4111-8111-111111111111/subagents/agent-a1.jsonl','claude-code',3,65024,4155378,3369,1700000014000000000,1795457247955610566,'2f746d702f616765642f686f6d652f632f70726f6a656374732f2d772d612f31313131313131312d313131312d343131312d383131312d3131313131313131313131312f7375626167656e74732f6167656e742d61312e6d6574612e6a736f6e:-',1,3369,8,'3369:b6baa4cb7dfcaa8d85527d85','3369:b6baa4cb7dfcaa8d85527d85','',0,1,0,'[]','');
INSERT INTO "files" VALUES(4,'/HOME/c/projects/-w-a/11111111-1111-4111-8111-111111111111.jsonl','claude-code',3,65024,2344524,3974,1700000010000000000,1795457247954095602,'',1,3974,8,'3974:57a0f35480273c5473b66b16','3974:57a0f35480273c5473b66b16','',1,2,0,'[]','55577fbb169c6d7aca8aef0b65cd4c23');
INSERT INTO "files" VALUES(5,'/HOME/c/projects/-w-a/22222222-2222-4222-8222-222222222222.jsonl','claude-code',3,65024,2344525,2732,1700000018000000000,1795457247956409881,'',1,2732,8,'2732:509d2a2bc5aec4253e294afa','2732:509d2a2bc5aec4253e294afa','',0,1,0,'[]','');
INSERT INTO "files" VALUES(6,'/HOME/c/projects/-w-b/22222222-2222-4222-8222-222222222222.jsonl','claude-code',3,65024,4162540,3401,1700000020000000000,1795457247957140573,'',1,3401,8,'3401:ba13f8805392fcf75acf32dc','3401:ba13f8805392fcf75acf32dc','',0,1,0,'[]','');
INSERT INTO "files" VALUES(7,'/HOME/x/sessions/2026/11/10/rollout-2026-11-10T10-00-00-019a0000-0001-7000-8000-000000000001.jsonl','codex',4,65024,4195066,2207,1700000023000000000,1795457247958024813,'',1,2207,9,'2207:46b72f04a78b8a4d394357b2','2207:46b72f04a78b8a4d394357b2','',0,1,0,'[]','');
INSERT INTO "files" VALUES(8,'/HOME/x/sessions/2026/11/10/rollout-2026-11-10T10-00-00-019a0000-0002-7000-8000-000000000002.jsonl','codex',4,65024,4195067,1471,1700000029000000000,1795457247958788345,'',1,1471,9,'1471:a480e692de85c242b570474a','1471:a480e692de85c242b570474a','',0,1,0,'[]','');
INSERT INTO "files" VALUES(9,'/HOME/x/archived_sessions/rollout-2026-11-10T10-00-00-019a0000-0001-7000-8000-000000000001.jsonl','codex',4,65024,4203809,1618,1700000031000000000,1795457247959559057,'',1,1618,9,'1618:6d8f8afdb70a5dff6dd91bea','1618:6d8f8afdb70a5dff6dd91bea','',1,2,0,'[]','99b60dd395393db5249ec11ecf36f503');
CREATE TABLE folders (path ANY PRIMARY KEY, mtime_ns INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE labels (
    id INTEGER PRIMARY KEY,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    response_model TEXT NOT NULL,
    project TEXT NOT NULL,
    branch TEXT NOT NULL,
    version TEXT NOT NULL,
    agent TEXT NOT NULL,
    granularity TEXT NOT NULL,
    quality TEXT NOT NULL,
    speed TEXT NOT NULL,
    service_tier TEXT NOT NULL
) STRICT;
INSERT INTO "labels" VALUES(1,'acme','m','unknown','/w/n','unknown','unknown','main','request','exact','','');
INSERT INTO "labels" VALUES(2,'acme','m0','unknown','/w/n','unknown','unknown','main','request','exact','','');
INSERT INTO "labels" VALUES(3,'anthropic','claude-sonnet-4-5-20250929','claude-sonnet-4-5-20250929','/w/a','main','2.1.31','sub-agent','request','exact','','');
INSERT INTO "labels" VALUES(4,'anthropic','claude-sonnet-4-5-20250929','unknown','/w/a','main','2.1.31','sub-agent','request','exact','','');
INSERT INTO "labels" VALUES(5,'anthropic','claude-sonnet-4-5-20250929','unknown','/w/a','main','2.1.31','main','request','exact','','');
INSERT INTO "labels" VALUES(6,'anthropic','claude-sonnet-4-5-20250929','claude-sonnet-4-5-20250929','/w/a','main','2.1.31','main','request','exact','','');
INSERT INTO "labels" VALUES(7,'anthropic','claude-sonnet-4-5-20250929','claude-sonnet-4-5-20250929','/w/b','main','2.1.31','sub-agent','request','exact','','');
INSERT INTO "labels" VALUES(8,'anthropic','claude-sonnet-4-5-20250929','claude-sonnet-4-5-20250929','/w/b','main','2.1.31','main','request','exact','','');
INSERT INTO "labels" VALUES(9,'acme','unknown','unknown','/w/x','unknown','unknown','main','request','exact','','');
INSERT INTO "labels" VALUES(10,'acme','m1','unknown','/w/y','unknown','unknown','main','request','exact','','');
INSERT INTO "labels" VALUES(11,'acme','m0','unknown','/w/x','unknown','unknown','main','request','exact','','');
CREATE TABLE limits (
    file_id INTEGER NOT NULL,
    source TEXT NOT NULL,
    name TEXT NOT NULL,
    time_ns INTEGER NOT NULL,
    used_percent ANY NOT NULL,
    window_minutes ANY,
    resets_ns INTEGER,
    plan TEXT NOT NULL
) STRICT;
INSERT INTO "limits" VALUES(8,'codex','primary',1794305985000000000,51.0,300.0,1795000001000000000,'');
CREATE TABLE listings (folder ANY NOT NULL, prefix TEXT NOT NULL, names ANY NOT NULL) STRICT;
CREATE TABLE log_sessions (
    file_id INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    n INTEGER NOT NULL,
    facts TEXT NOT NULL,
    PRIMARY KEY (file_id, session_id, n)
) STRICT, WITHOUT ROWID;
INSERT INTO "log_sessions" VALUES(1,1,0,'{"source": "native", "session_id": "n2", "path": "/HOME/s/deep/n2.jsonl", "place": "/HOME/s/deep", "part": false, "parent": "", "start_ns": 1794304956000000000, "last_ns": 1794305077000000000, "status": null, "project": "/w/n", "harness": "unknown", "route": "unknown", "duration_ms": null, "prompt": "number n2", "error": "", "turns": 1, "last_turn_ns": 1794304956000000000, "counted": true, "metadata": "{}"}');
INSERT INTO "log_sessions" VALUES(2,2,0,'{"source": "native", "session_id": "n1", "path": "/HOME/s/n1.jsonl", "place": "/HOME/s", "part": false, "parent": "", "start_ns": 1794304801000000000, "last_ns": 1794304955000000000, "status": null, "project": "/w/n", "harness": "unknown", "route": "unknown", "duration_ms": null, "prompt": "number n1", "error": "", "turns": 1, "last_turn_ns": 1794304801000000000, "counted": true, "metadata": "{}"}');
INSERT INTO "log_sessions" VALUES(3,3,0,'{"source": "claude-code", "session_id": "11111111-1111-4111-8111-111111111111", "path": "/HOME/c/projects/-w-a/11111111-1111-4111-8111-111111111111/subagents/agent-a1.jsonl", "place": "", "part": true, "parent": "", "start_ns": 1794305200000000000, "last_ns": 1794305343000000000, "status": null, "project": "/w/a", "harness": "claude-code", "route": "unknown", "duration_ms": null, "prompt": "", "error": "", "turns": null, "last_turn_ns": null, "counted": true, "metadata": "{}"}');
INSERT INTO "log_sessions" VALUES(4,3,0,'{"source": "claude-code", "session_id": "11111111-1111-4111-8111-111111111111", "path": "/HOME/c/projects/-w-a/11111111-1111-4111-8111-111111111111.jsonl", "place": "", "part": false, "parent": "", "start_ns": 1794305100000000000, "last_ns": 1794305199000000000, "status": null, "project": "/w/a", "harness": "claude-code", "route": "unknown", "duration_ms": null, "prompt": "do 3", "error": "", "turns": 1, "last_turn_ns": 1794305166000000000, "counted": true, "metadata": "{}"}');
INSERT INTO "log_sessions" VALUES(5,4,0,'{"source": "claude-code", "session_id": "22222222-2222-4222-8222-222222222222", "path": "/HOME/c/projects/-w-a/22222222-2222-4222-8222-222222222222.jsonl", "place": "", "part": false, "parent": "", "start_ns": 1794305366000000000, "last_ns": 1794305443000000000, "status": null, "project": "/w/a", "harness": "claude-code", "route": "unknown", "duration_ms": null, "prompt": "do 3", "error": "", "turns": 1, "last_turn_ns": 1794305432000000000, "counted": true, "metadata": "{}"}');
INSERT INTO "log_sessions" VALUES(6,4,0,'{"source": "claude-code", "session_id": "22222222-2222-4222-8222-222222222222", "path": "/HOME/c/projects/-w-b/22222222-2222-4222-8222-222222222222.jsonl", "place": "", "part": false, "parent": "", "start_ns": 1794305477000000000, "last_ns": 1794305609000000000, "status": "error", "project": "/w/b", "harness": "claude-code", "route": "unknown", "duration_ms": null, "prompt": "do 1", "error": "so", "turns": 1, "last_turn_ns": 1794305521000000000, "counted": true, "metadata": "{}"}');
INSERT INTO "log_sessions" VALUES(7,5,0,'{"source": "codex", "session_id": "019a0000-0001-7000-8000-000000000001", "path": "/HOME/x/sessions/2026/11/10/rollout-2026-11-10T10-00-00-019a0000-0001-7000-8000-000000000001.jsonl", "place": "", "part": false, "parent": "", "start_ns": 1794305610000000000, "last_ns": 1794305786000000000, "status": null, "project": "/w/x", "harness": "codex", "route": "unknown", "duration_ms": null, "prompt": "", "error": "", "turns": 0, "last_turn_ns": null, "counted": true, "metadata": "{\"context_window\":272000}"}');
INSERT INTO "log_sessions" VALUES(8,6,0,'{"source": "codex", "session_id": "019a0000-0002-7000-8000-000000000002", "path": "/HOME/x/sessions/2026/11/10/rollout-2026-11-10T10-00-00-019a0000-0002-7000-8000-000000000002.jsonl", "place": "", "part": false, "parent": "", "start_ns": 1794305787000000000, "last_ns": 1794305985000000000, "status": null, "project": "/w/x", "harness": "codex", "route": "unknown", "duration_ms": null, "prompt": "", "error": "", "turns": 0, "last_turn_ns": null, "counted": true, "metadata": "{\"context_window\":272000}"}');
INSERT INTO "log_sessions" VALUES(9,5,0,'{"source": "codex", "session_id": "019a0000-0001-7000-8000-000000000001", "path": "/HOME/x/archived_sessions/rollout-2026-11-10T10-00-00-019a0000-0001-7000-8000-000000000001.jsonl", "place": "", "part": false, "parent": "", "start_ns": 1794305986000000000, "last_ns": 1794306052000000000, "status": null, "project": "/w/x", "harness": "codex", "route": "unknown", "duration_ms": null, "prompt": "", "error": "", "turns": 0, "last_turn_ns": null, "counted": true, "metadata": "{\"context_window\":272000}"}');
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "meta" VALUES('own_prices','yes');
INSERT INTO "meta" VALUES('priced_from','the house''s list of 2026-11-01');
INSERT INTO "meta" VALUES('prices','3a5f518b8f363b50f902374fecf72043');
INSERT INTO "meta" VALUES('synced','1795457248296340792');
CREATE TABLE names (
    id INTEGER PRIMARY KEY,
    tool TEXT NOT NULL,
    server TEXT NOT NULL,
    agent TEXT NOT NULL,
    project TEXT NOT NULL
) STRICT;
INSERT INTO "names" VALUES(1,'t1','','main','/w/n');
INSERT INTO "names" VALUES(2,'t0','','main','/w/n');
INSERT INTO "names" VALUES(3,'find','docs','main','/w/a');
INSERT INTO "names" VALUES(4,'Bash','','main','/w/a');
INSERT INTO "names" VALUES(5,'t0','','main','/w/x');
CREATE TABLE quarter_hours (
    session_id INTEGER NOT NULL,
    label_id INTEGER NOT NULL,
    time_ns INTEGER,
    first_ns INTEGER,
    last_ns INTEGER,
    requests INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cost_nano INTEGER,
    estimate_nano INTEGER,
    unknown INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    generated INTEGER NOT NULL,
    generation_us INTEGER NOT NULL,
    active_ms INTEGER NOT NULL,
    latencies TEXT,
    saved_nano INTEGER
) STRICT;
INSERT INTO "quarter_hours" VALUES(1,1,1794304800000000000,1794305033000000000,1794305033000000000,0,0,0,54,0,0,0,340000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "quarter_hours" VALUES(1,2,1794304800000000000,1794305033000000000,1794305077000000000,2,0,810,81,4,0,0,NULL,1134400,0,0,81,567000,121000,'ᄑᄦ',3600);
INSERT INTO "quarter_hours" VALUES(2,1,1794304800000000000,1794304812000000000,1794304812000000000,1,0,170,17,0,0,0,NULL,238000,0,0,17,119000,154000,'ჱ',NULL);
INSERT INTO "quarter_hours" VALUES(4,6,1794304800000000000,1794305366000000000,1794305366000000000,1,0,1,78,50,0,0,NULL,1188000,0,0,0,0,0,NULL,135000);
INSERT INTO "quarter_hours" VALUES(4,8,1794304800000000000,1794305598000000000,1794305598000000000,1,1,0,147,50,0,0,NULL,2220000,0,0,0,0,55000,NULL,135000);
INSERT INTO "quarter_hours" VALUES(6,9,1794305700000000000,1794305820000000000,1794305853000000000,2,2,0,0,0,0,0,NULL,NULL,0,0,0,0,132000,NULL,NULL);
INSERT INTO "quarter_hours" VALUES(6,10,1794305700000000000,1794305963000000000,1794305985000000000,2,1,0,34,0,0,0,NULL,136000,0,0,0,0,66000,NULL,NULL);
INSERT INTO "quarter_hours" VALUES(3,5,1794304800000000000,1794305100000000000,1794305166000000000,2,1,5,171,100,0,0,NULL,2610000,0,0,0,0,66000,NULL,270000);
INSERT INTO "quarter_hours" VALUES(5,9,1794304800000000000,1794305665000000000,1794305665000000000,1,0,0,23,0,0,0,NULL,NULL,1,1,23,33000000,55000,'ል',NULL);
INSERT INTO "quarter_hours" VALUES(5,9,1794305700000000000,1794305786000000000,1794305786000000000,1,0,0,20,0,0,0,NULL,NULL,1,1,20,33000000,121000,'ል',NULL);
INSERT INTO "quarter_hours" VALUES(5,11,1794305700000000000,1794306019000000000,1794306019000000000,1,0,0,20,0,0,0,NULL,80000,0,0,0,0,33000,NULL,NULL);
CREATE TABLE reservations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    budget TEXT NOT NULL,
    session TEXT NOT NULL,
    amount INTEGER NOT NULL,
    boot TEXT NOT NULL,
    boot_ns INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    after_ns INTEGER NOT NULL
) STRICT;
CREATE TABLE responses (
    file_id INTEGER NOT NULL,
    n INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    label_id INTEGER NOT NULL,
    family INTEGER,
    key INTEGER,
    copy_rank INTEGER NOT NULL,
    superseded_by TEXT,
    counts INTEGER NOT NULL,
    time_ns INTEGER,
    requests INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    recorded_nano INTEGER,
    cost_nano INTEGER,
    estimate_nano INTEGER,
    saved_nano INTEGER,
    priced INTEGER NOT NULL,
    latency_ms REAL,
    latency_bucket INTEGER,
    active_ms INTEGER NOT NULL,
    PRIMARY KEY (file_id, n)
) STRICT, WITHOUT ROWID;
INSERT INTO "responses" VALUES(1,0,1,1,NULL,NULL,2,NULL,1,1794305033000000000,0,0,0,54,0,0,0,0,340000000,340000000,NULL,NULL,0,NULL,NULL,0);
INSERT INTO "responses" VALUES(1,1,1,2,NULL,NULL,2,NULL,1,1794305033000000000,1,0,320,32,3,0,0,0,NULL,NULL,448300,2700,1,224.0,273,77000);
INSERT INTO "responses" VALUES(1,2,1,2,NULL,NULL,2,NULL,1,1794305077000000000,1,0,490,49,1,0,0,0,NULL,NULL,686100,900,1,343.0,294,44000);
INSERT INTO "responses" VALUES(2,0,2,1,NULL,NULL,2,NULL,1,1794304812000000000,1,0,170,17,0,0,0,0,NULL,NULL,238000,NULL,1,119.0,241,154000);
INSERT INTO "responses" VALUES(3,0,3,3,-8983664720895566867,1354579737920656095,0,NULL,0,1794305200000000000,1,0,2,1,50,0,0,0,NULL,NULL,36000,135000,1,NULL,NULL,0);
INSERT INTO "responses" VALUES(3,1,3,3,8574796374648188294,-3100403614760118628,-1,NULL,0,1794305211000000000,1,0,0,87,50,0,0,0,NULL,NULL,1320000,135000,1,NULL,NULL,0);
INSERT INTO "responses" VALUES(3,2,3,4,8574796374648188294,-3100403614760118628,0,NULL,0,1794305277000000000,1,1,0,93,50,0,0,0,NULL,NULL,1410000,135000,1,NULL,NULL,0);
INSERT INTO "responses" VALUES(3,3,3,3,-4675934878372194496,2924338385465981090,0,NULL,0,1794305332000000000,1,0,1,33,50,0,0,0,NULL,NULL,513000,135000,1,33000.0,525,0);
INSERT INTO "responses" VALUES(4,0,3,5,-8983664720895566867,1354579737920656095,2,NULL,1,1794305100000000000,1,0,2,57,50,0,0,0,NULL,NULL,876000,135000,1,NULL,NULL,0);
INSERT INTO "responses" VALUES(4,1,3,3,8574796374648188294,-793210343778712214,0,NULL,0,1794305100000000000,1,0,0,36,50,0,0,0,NULL,NULL,555000,135000,1,NULL,NULL,0);
INSERT INTO "responses" VALUES(4,2,3,3,-693624855911174041,-5665397154625988424,-1,NULL,0,1794305111000000000,1,0,3,99,50,0,0,0,NULL,NULL,1509000,135000,1,NULL,NULL,0);
INSERT INTO "responses" VALUES(4,3,3,5,-693624855911174041,-5665397154625988424,2,NULL,1,1794305166000000000,1,1,3,114,50,0,0,0,NULL,NULL,1734000,135000,1,66000.0,NULL,66000);
INSERT INTO "responses" VALUES(4,4,3,3,-693624855911174041,1428496535935102832,0,NULL,0,1794305199000000000,1,0,3,129,50,0,0,0,NULL,NULL,1959000,135000,1,NULL,NULL,33000);
INSERT INTO "responses" VALUES(5,0,4,6,-4675934878372194496,-6148866154874836310,2,NULL,1,1794305366000000000,1,0,1,78,50,0,0,0,NULL,NULL,1188000,135000,1,NULL,NULL,0);
INSERT INTO "responses" VALUES(5,1,4,3,-693624855911174041,-5665397154625988424,-1,NULL,0,1794305399000000000,1,0,3,54,50,0,0,0,NULL,NULL,834000,135000,1,NULL,NULL,0);
INSERT INTO "responses" VALUES(6,0,4,7,-693624855911174041,1428496535935102832,0,NULL,0,1794305477000000000,1,0,3,69,50,0,0,0,NULL,NULL,1059000,135000,1,NULL,NULL,0);
INSERT INTO "responses" VALUES(6,1,4,7,-8983664720895566867,-8714092701250083184,0,NULL,0,1794305488000000000,1,0,2,3,50,0,0,0,NULL,NULL,66000,135000,1,NULL,NULL,11000);
INSERT INTO "responses" VALUES(6,2,4,8,-4675934878372194496,-6148866154874836310,2,NULL,0,1794305543000000000,1,0,1,1,50,0,0,0,NULL,NULL,33000,135000,1,22000.0,504,55000);
INSERT INTO "responses" VALUES(6,3,4,8,8574796374648188294,-3100403614760118628,2,NULL,1,1794305598000000000,1,1,0,147,50,0,0,0,NULL,NULL,2220000,135000,1,NULL,NULL,55000);
INSERT INTO "responses" VALUES(7,0,5,9,-3426356206352905885,5296449688418355743,2,NULL,1,1794305665000000000,1,0,0,23,0,0,0,0,NULL,NULL,NULL,NULL,1,33000.0,525,55000);
INSERT INTO "responses" VALUES(7,1,5,9,-4996532053193472009,-669892365496602071,2,NULL,1,1794305786000000000,1,0,0,20,0,0,0,0,NULL,NULL,NULL,NULL,1,33000.0,525,121000);
INSERT INTO "responses" VALUES(8,0,6,9,-7553174322208826833,-7553174322208826833,2,NULL,1,1794305820000000000,1,1,0,0,0,0,0,0,NULL,NULL,NULL,NULL,0,NULL,NULL,33000);
INSERT INTO "responses" VALUES(8,1,6,9,-4544370302379481220,-4544370302379481220,2,NULL,1,1794305853000000000,1,1,0,0,0,0,0,0,NULL,NULL,NULL,NULL,0,NULL,NULL,99000);
INSERT INTO "responses" VALUES(8,2,6,10,-382119764992577519,-382119764992577519,2,NULL,1,1794305963000000000,1,1,0,0,0,0,0,0,NULL,NULL,NULL,NULL,0,11000.0,NULL,44000);
INSERT INTO "responses" VALUES(8,3,6,10,-2021033376250008603,-1644611108117088272,2,NULL,1,1794305985000000000,1,0,0,34,0,0,0,0,NULL,NULL,136000,NULL,1,NULL,NULL,22000);
INSERT INTO "responses" VALUES(9,0,5,11,198519559430770557,6364691412381519613,2,NULL,1,1794306019000000000,1,0,0,20,0,0,0,0,NULL,NULL,80000,NULL,1,NULL,NULL,33000);
CREATE TABLE resumes (file_id INTEGER PRIMARY KEY, state BLOB NOT NULL) STRICT;
CREATE TABLE variables (name TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
CREATE VIEW records AS SELECT * FROM responses WHERE counts;
CREATE VIEW tools AS SELECT c.*, n.tool, n.server, n.agent, n.project
    FROM calls c JOIN names n ON n.id = c.name_id WHERE c.counts;
CREATE VIEW sessions AS SELECT * FROM all_sessions WHERE NOT elsewhere;
CREATE INDEX responses_by_family ON responses(family) WHERE family IS NOT NULL;
CREATE INDEX responses_superseded ON responses(superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX calls_by_key ON calls(key);
CREATE INDEX calls_superseded ON calls(superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX log_sessions_by_session ON log_sessions(session_id);
CREATE INDEX totals_by_session ON quarter_hours(session_id);
CREATE INDEX limits_by_file ON limits(file_id);
DELETE FROM "sqlite_sequence";
COMMIT;
