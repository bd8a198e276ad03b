PRAGMA application_id = 1582633158;
PRAGMA user_version = 8;
BEGIN TRANSACTION;
CREATE TABLE agents (
        n INTEGER PRIMARY KEY,
        source TEXT NOT NULL,
        title TEXT NOT NULL,
        places ANY NOT NULL,
        kept_days INTEGER,
        kept_by TEXT,
        caveat TEXT NOT NULL
    ) STRICT;
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
    on_wire_of TEXT,
    absorbed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (source, session, place)
) STRICT;
INSERT INTO "all_sessions" VALUES(1,'native','wire','wire wire session.start 2026-11-10T10:00:57.000Z','/home/ada/s/wire.jsonl','',0,1794304857000000000,1794304890000000000,NULL,'/w/n','unknown','unknown',NULL,'number wire','','{}',1,1794304857000000000,1,0,0,'',1);
INSERT INTO "all_sessions" VALUES(2,'claude-code','11111111-1111-4111-8111-111111111111','','/home/ada/c/projects/-w-a/11111111-1111-4111-8111-111111111111.jsonl','',0,1794304812000000000,1794304856000000000,'success','/w/a','claude-code','unknown',NULL,'do 0','','{}',1,1794304812000000000,1,1,0,NULL,0);
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
CREATE TABLE current_prices (
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        input_usd REAL,
        output_usd REAL,
        source TEXT NOT NULL,
        until_ns INTEGER,
        PRIMARY KEY (provider, model)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    path ANY NOT NULL,
    source TEXT NOT NULL DEFAULT '',
    parser INTEGER NOT NULL DEFAULT 0,
    device INTEGER NOT NULL DEFAULT 0,
    inode INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL DEFAULT 0,
    mtime_ns INTEGER NOT NULL DEFAULT 0,
    ctime_ns INTEGER NOT NULL DEFAULT 0,
    beside TEXT NOT NULL DEFAULT '',
    settled INTEGER NOT NULL DEFAULT 0,
    offset INTEGER NOT NULL DEFAULT 0,
    line INTEGER NOT NULL DEFAULT 0,
    head TEXT NOT NULL DEFAULT '',
    print TEXT NOT NULL DEFAULT '',
    prefix TEXT NOT NULL DEFAULT '',
    missing INTEGER NOT NULL DEFAULT 0,
    stamp INTEGER NOT NULL DEFAULT 0,
    problems INTEGER NOT NULL DEFAULT 0,
    named TEXT NOT NULL DEFAULT '',
    checksum TEXT NOT NULL DEFAULT '',
    UNIQUE (path)
) STRICT;
INSERT INTO "files" VALUES(1,'/home/ada/s/wire.jsonl','native',9,65024,2614530,540,1700000009000000000,1795868574601202636,'',1,540,3,'540:95aff60e5224d31c9ebb59e2','540:95aff60e5224d31c9ebb59e2','',0,1,0,'[]','');
INSERT INTO "files" VALUES(2,'/home/ada/c/projects/-w-a/11111111-1111-4111-8111-111111111111.jsonl','claude-code',5,65024,2614529,1304,1700000005000000000,1795868574600707713,'',1,1304,3,'1304:f5f4e643b06982ad174ee43c','1304:f5f4e643b06982ad174ee43c','',1,2,0,'[]','26cb96a2295fb0bda1505be3d256db76');
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
    service_tier TEXT NOT NULL,
    skill TEXT NOT NULL DEFAULT '',
    plugin TEXT NOT NULL DEFAULT '',
    mcp TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO "labels" VALUES(1,'acme','m','unknown','/w/n','unknown','unknown','main','request','exact','','','','','');
INSERT INTO "labels" VALUES(2,'anthropic','claude-sonnet-4-5-20250929','claude-sonnet-4-5-20250929','/w/a','main','2.1.31','main','request','exact','','','','','');
INSERT INTO "labels" VALUES(3,'anthropic','m','unknown','/w/a','main','2.1.31','main','request','exact','','','','','');
INSERT INTO "labels" VALUES(4,'acme','m','unknown','/w/a','main','2.1.31','main','request','exact','','','','','');
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
CREATE TABLE listings (folder ANY NOT NULL, prefix TEXT NOT NULL, names ANY NOT NULL) STRICT;
CREATE TABLE log_sessions (
    file_id INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    n INTEGER NOT NULL,
    facts TEXT NOT NULL,
    PRIMARY KEY (file_id, session_id, n)
) STRICT, WITHOUT ROWID;
INSERT INTO "log_sessions" VALUES(1,1,0,'{"source":"native","session_id":"wire","path":"/home/ada/s/wire.jsonl","place":"wire wire session.start 2026-11-10T10:00:57.000Z","part":false,"parent":"","start_ns":1794304857000000000,"last_ns":1794304890000000000,"status":null,"project":"/w/n","harness":"unknown","route":"unknown","duration_ms":null,"prompt":"number wire","error":"","turns":1,"last_turn_ns":1794304857000000000,"counted":true,"on_wire_of":"","metadata":"{}"}');
INSERT INTO "log_sessions" VALUES(2,2,0,'{"source":"claude-code","session_id":"11111111-1111-4111-8111-111111111111","path":"/home/ada/c/projects/-w-a/11111111-1111-4111-8111-111111111111.jsonl","place":"","part":false,"parent":"","start_ns":1794304812000000000,"last_ns":1794304856000000000,"status":"success","project":"/w/a","harness":"claude-code","route":"unknown","duration_ms":null,"prompt":"do 0","error":"","turns":1,"last_turn_ns":1794304812000000000,"counted":true,"on_wire_of":null,"metadata":"{}"}');
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "meta" VALUES('change','2');
INSERT INTO "meta" VALUES('changed_whole','1');
INSERT INTO "meta" VALUES('own_prices','yes');
INSERT INTO "meta" VALUES('priced_from','own prices, else the house''s list of 2026-11-01');
INSERT INTO "meta" VALUES('prices','fdfeec16a443b41eb4a1bcd036e0821f');
INSERT INTO "meta" VALUES('prices_looked_up','1795868574794369622');
INSERT INTO "meta" VALUES('snapshot','0.1.0');
INSERT INTO "meta" VALUES('synced','1795868574817075050');
CREATE TABLE names (
    id INTEGER PRIMARY KEY,
    tool TEXT NOT NULL,
    server TEXT NOT NULL,
    agent TEXT NOT NULL,
    project TEXT NOT NULL
) STRICT;
CREATE TABLE quarter_hours (session_id INTEGER NOT NULL, label_id INTEGER NOT NULL, time_ns INTEGER, first_ns INTEGER, last_ns INTEGER, unknown INTEGER NOT NULL, unpriced INTEGER NOT NULL, generated INTEGER NOT NULL, generation_us INTEGER NOT NULL, latencies TEXT, requests INTEGER NOT NULL, failed INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL, cost_nano INTEGER, estimate_nano INTEGER, saved_nano INTEGER, active_ms INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "quarter_hours" VALUES(2,2,1794304800000000000,1794304834000000000,1794304856000000000,0,0,12,23400000,'ᅭᇸ',2,0,3,12,100,0,0,NULL,219000,270000,44000);
INSERT INTO "quarter_hours" VALUES(2,4,1794304800000000000,1794304890000000000,1794304890000000000,0,0,3,700000,'ᅊ',1,0,3,3,50,0,0,NULL,20000,45000,0);
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
    priced INTEGER NOT NULL DEFAULT 1,
    latency_ms REAL,
    latency_bucket INTEGER,
    active_ms INTEGER NOT NULL DEFAULT 0,
    response_id INTEGER,
    summed INTEGER NOT NULL DEFAULT 0,
    chosen INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (file_id, n)
) STRICT, WITHOUT ROWID;
INSERT INTO "responses" VALUES(1,0,1,1,5871969354227523261,2444553735493045599,2,NULL,0,1794304879000000000,1,0,2,6,50,0,0,0,NULL,NULL,31000,45000,1,1400.0,365,22000,-3443493097845441126,0,1);
INSERT INTO "responses" VALUES(1,1,1,1,5806535549067784832,5806535549067784832,1,NULL,0,1794304890000000000,1,0,3,3,50,0,0,0,NULL,NULL,20000,45000,1,700.0,330,11000,-5950779346123459367,0,1);
INSERT INTO "responses" VALUES(2,-1168231104513,2,4,NULL,NULL,1,NULL,1,1794304890000000000,1,0,3,3,50,0,0,0,NULL,NULL,20000,45000,1,700.0,330,0,NULL,0,1);
INSERT INTO "responses" VALUES(2,-1168231104512,2,2,NULL,NULL,2,NULL,1,1794304856000000000,1,0,2,6,50,0,0,0,NULL,NULL,111000,135000,1,1400.0,365,22000,-3443493097845441126,0,1);
INSERT INTO "responses" VALUES(2,0,2,2,-4675934878372194496,-6148866154874836310,2,NULL,1,1794304834000000000,1,0,1,6,50,0,0,0,NULL,NULL,108000,135000,1,22000.0,504,22000,4901839642943122077,0,1);
INSERT INTO "responses" VALUES(2,1,2,2,-8983664720895566867,1354579737920656095,2,NULL,0,1794304856000000000,1,0,2,6,50,0,0,0,NULL,NULL,111000,135000,1,NULL,NULL,22000,-3443493097845441126,0,1);
CREATE TABLE resumes (file_id INTEGER PRIMARY KEY, state BLOB NOT NULL) STRICT;
CREATE TABLE session_changes (session_id INTEGER PRIMARY KEY, number INTEGER NOT NULL) STRICT;
INSERT INTO "session_changes" VALUES(1,2);
INSERT INTO "session_changes" VALUES(2,2);
CREATE TABLE variables (name TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
CREATE TABLE wire_matches (
    wire_session INTEGER NOT NULL,
    file_id INTEGER NOT NULL,
    n INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    log_file INTEGER,
    log_n INTEGER,
    matched_by TEXT NOT NULL,
    made_file INTEGER NOT NULL,
    made_n INTEGER NOT NULL,
    PRIMARY KEY (wire_session, file_id, n)
) STRICT, WITHOUT ROWID;
INSERT INTO "wire_matches" VALUES(1,1,0,2,2,1,'id',2,-1168231104512);
INSERT INTO "wire_matches" VALUES(1,1,1,2,NULL,NULL,'',2,-1168231104513);
CREATE VIEW records AS SELECT * FROM responses WHERE counts;
CREATE VIEW tools AS SELECT c.*, n.tool, n.server, n.agent, n.project
    FROM calls c JOIN names n ON n.id = c.name_id
    WHERE c.counts AND c.session_id NOT IN (SELECT id FROM all_sessions WHERE absorbed);
CREATE VIEW sessions AS SELECT * FROM all_sessions WHERE NOT elsewhere AND NOT absorbed;
CREATE INDEX wire_matches_by_session ON wire_matches(session_id);
CREATE INDEX sessions_on_wire ON all_sessions(start_ns, last_ns) WHERE on_wire_of IS NOT NULL;
CREATE INDEX sessions_absorbed ON all_sessions(id) WHERE absorbed;
CREATE INDEX responses_by_family ON responses(family) WHERE family IS NOT NULL;
CREATE INDEX responses_superseded ON responses(superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX calls_by_key ON calls(key);
CREATE INDEX calls_superseded ON calls(superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX log_sessions_by_session ON log_sessions(session_id);
CREATE INDEX totals_by_session ON quarter_hours(session_id);
CREATE INDEX limits_by_file ON limits(file_id);
DELETE FROM "sqlite_sequence";
COMMIT;
