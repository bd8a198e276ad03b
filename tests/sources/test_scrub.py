"""Secrets in logs: every agent's files, packed ones and databases; copies without them, originals untouched."""

import gzip
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from sessionlog import files
from sessionlog.errors import InvalidSettings
from sessionlog.events.redact import replace_spans
from sessionlog.events.secrets import find_spans
from sessionlog.events.secrets.rules import NAMED, RULES
from sessionlog.reader.unpack import zstd_module
from sessionlog.sources import scrub
from sessionlog.sources.scrub import scrub_file, scrub_logs

TOKEN = "ghp_" + "a1B2" * 9
PASSWORD = "s3cr3t" + "-pw9"


def event(text):
    return json.dumps({"session_id": "s", "seq": 1, "type": "note", "ts": "2026-11-22T10:00:00Z", "data": text}) + "\n"


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "logs" / "s.jsonl"
    path.parent.mkdir()
    path.write_text(event("nothing") + event(f"the key is {TOKEN}") + '{"torn": "' + TOKEN)
    return path


def test_findings_name_line_and_place(log):
    """Also in a damaged line; the offset is that in the line."""
    [found] = scrub_logs([str(log)], {})
    assert found.source == "native"
    assert [(f.rule, f.line) for f in found.findings] == [("github-token", 2), ("github-token", 3)]
    line = log.read_bytes().splitlines()[1]
    assert line[found.findings[0].offset :].startswith(b"ghp_")
    assert found.counts == {"github-token": 2}


def test_p17_copies_have_no_secret_and_originals_stay(log, tmp_path):
    """Byte for byte but for what was found; private; a second search finds nothing."""
    before, status = log.read_bytes(), os.stat(log)
    [found] = scrub_logs([str(log.parent)], {}, copies=str(tmp_path / "clean"))
    assert found.copy == str(tmp_path / "clean" / "s.jsonl")
    assert (log.read_bytes(), os.stat(log).st_mtime_ns) == (before, status.st_mtime_ns)
    clean = (tmp_path / "clean" / "s.jsonl").read_bytes()
    assert clean == before.replace(TOKEN.encode(), b"[redacted]")
    assert os.stat(found.copy).st_mode & 0o077 == 0
    [again] = scrub_logs([str(tmp_path / "clean")], {})
    assert again.counts == {}


def test_a_packed_log_is_searched_and_unpacked(log, tmp_path):
    """Its copy is plain."""
    packed = log.with_name("p.jsonl.gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    found = scrub_file(str(packed), copy=str(tmp_path / "clean" / "p.jsonl"))
    assert found.counts == {"github-token": 2}
    assert TOKEN.encode() not in (tmp_path / "clean" / "p.jsonl").read_bytes()


def test_a_long_line_is_searched_in_pieces(log, tmp_path, monkeypatch):
    """Cut where no secret can be: none is lost at a cut, and the copy is the same."""
    monkeypatch.setattr(scrub, "_PIECE", 4096)
    monkeypatch.setattr(scrub, "_OVERLAP", 1024)
    parts = [f"word {number} {TOKEN}" if number % 7 == 0 else "some words " * 3 for number in range(600)]
    log.write_text(json.dumps(parts) + "\n" + event(TOKEN))
    found = scrub_file(str(log), copy=str(tmp_path / "clean.jsonl"))
    assert found.counts == {"github-token": 87}
    assert {f.line for f in found.findings} == {1, 2}
    first = log.read_bytes().splitlines()[0]
    for finding in found.findings[:-1]:
        assert first[finding.offset :].startswith(b"ghp_")
    assert (tmp_path / "clean.jsonl").read_text() == log.read_text().replace(TOKEN, "[redacted]")


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "logs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE responses (id TEXT PRIMARY KEY, prompt TEXT, raw BLOB);"
            "CREATE TABLE plain (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID;"
            "CREATE VIRTUAL TABLE found_fts USING fts5(prompt, content=responses);"
            "CREATE TRIGGER watch AFTER UPDATE ON responses BEGIN SELECT no_such_function(); END;"
        )
        connection.execute(
            "INSERT INTO responses VALUES ('1', ?, ?)", (f"it is {TOKEN}", f"DB_PASSWORD={PASSWORD}".encode())
        )
        connection.execute("INSERT INTO plain VALUES ('a', ?)", (TOKEN,))
        connection.execute("INSERT INTO found_fts(found_fts) VALUES ('rebuild')")
        connection.commit()
    return path


def test_databases_are_searched_value_by_value(database):
    """The place is the table, the column and the row; a virtual table is made of others."""
    found = scrub_file(str(database))
    assert found.problem == ""
    places = {(f.rule, f.place) for f in found.findings}
    assert ("github-token", "responses.prompt, row 1") in places
    assert ("password-by-name", "responses.raw, row 1") in places
    assert ("github-token", "plain.v, row 1") in places


def test_a_database_s_copy_has_none_of_its_bytes(database, tmp_path):
    """Neither in a free page, nor in the index of its words; triggers are kept and do not run."""
    before = database.read_bytes()
    found = scrub_file(str(database), copy=str(tmp_path / "clean" / "logs.db"))
    assert (found.problem, database.read_bytes()) == ("", before)
    clean = (tmp_path / "clean" / "logs.db").read_bytes()
    assert b"a1B2a1B2" not in clean
    assert b"a1b2a1b2" not in clean
    assert PASSWORD.encode() not in clean
    with closing(sqlite3.connect(found.copy)) as connection:
        assert connection.execute("SELECT prompt, raw FROM responses").fetchall() == [
            ("it is [redacted]", b"DB_PASSWORD=[redacted]")
        ]
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM found_fts WHERE found_fts MATCH 'redacted'").fetchone() == (1,)


def test_a_folder_that_holds_files_is_refused(log, tmp_path):
    """Nothing is ever written over; the next step is named."""
    with pytest.raises(InvalidSettings, match="holds files already; name a new folder"):
        list(scrub_logs([str(log)], {}, copies=str(log.parent)))
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidSettings):
        list(scrub_logs([str(log)], {}, copies=str(link)))


def test_what_cannot_be_read_is_named_and_costs_nothing_else(log):
    """A damaged database, a packed file that ends early."""
    (log.parent / "bad.jsonl.gz").write_bytes(gzip.compress(log.read_bytes())[:-20])
    (log.parent / "bad.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    found = {os.path.basename(item.path): item for item in scrub_logs([str(log.parent)], {})}
    assert found["s.jsonl"].counts == {"github-token": 2}
    assert "end early" in found["bad.jsonl.gz"].problem
    assert found["bad.db"].problem


def test_an_interrupt_leaves_no_temporary_file_of_a_copy(log, tmp_path):
    """Ctrl-C ends workers at once: what they were writing has secrets cut off anywhere. Other hidden files stay."""
    (log.parent / ".s.jsonl.12345678").write_bytes(log.read_bytes())
    (log.parent / "packed.jsonl.gz").write_bytes(gzip.compress(log.read_bytes()))
    (log.parent / "[a-z].jsonl").write_bytes(log.read_bytes())
    clean = tmp_path / "clean"

    def interrupted(items, sizes, function):
        yield len(items), function(items)
        for name in ("s.jsonl", "packed.jsonl", "[a-z].jsonl"):
            files.write_temporary(str(clean / name), [b"half"])
        (clean / ".other.jsonl.12345678").write_bytes(b"")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(scrub_logs([str(log.parent / name) for name in os.listdir(log.parent)], {}, copies=str(clean),
                        spread=interrupted))  # fmt: skip
    assert sorted(os.listdir(clean)) == [
        ".other.jsonl.12345678", ".s.jsonl.12345678", "[a-z].jsonl", "packed.jsonl", "s.jsonl"
    ]  # fmt: skip


SAMPLES = [(rule.id, text) for rule in (*RULES, *NAMED) for text in rule.positive]


@pytest.mark.parametrize(("rule", "text"), SAMPLES, ids=[f"{rule}-{n}" for n, (rule, _) in enumerate(SAMPLES)])
def test_p17_a_secret_is_found_wherever_a_long_line_is_cut(rule, text, monkeypatch):
    """Of every rule, at every byte around a cut and around the end of a piece: as in the line as a whole."""
    monkeypatch.setattr(scrub, "_PIECE", 1024)
    monkeypatch.setattr(scrub, "_OVERLAP", 1024)
    inner = json.dumps(text)[1:-1].encode()
    around_the_cut, around_the_end = (range(at - len(inner) - 2, at + 3, step) for at, step in ((512, 1), (1024, 7)))
    for begin in (*around_the_cut, *around_the_end):
        line = (b'"' + b"x. " * 345)[:begin] + b" " + inner + b' end", ' + b'"y", ' * 220
        pieces = list(scrub._pieces(io.BytesIO(line)))
        assert b"".join(piece for piece, _ in pieces) == line
        found, offset = [], 0
        for piece, spans in pieces:
            found += [(offset + first, offset + last, name) for first, last, name in spans]
            offset += len(piece)
        assert found == find_spans(line), begin
        assert [name for _, _, name in found] == [rule]


def test_p17_a_key_of_any_length_is_found_where_a_line_is_cut(monkeypatch):
    """Longer than what two pieces have in common."""
    monkeypatch.setattr(scrub, "_PIECE", 4096)
    monkeypatch.setattr(scrub, "_OVERLAP", 512)
    key = "-----BEGIN PRIVATE KEY-----\\n" + "MIIEa1B2c3D4\\n" * 150 + "-----END PRIVATE KEY-----"
    for begin in range(3000, 4300, 7):
        line = ("x. " * 2000)[:begin] + key + " x." * 2000
        pieces = [replace_spans(*one) for one in scrub._pieces(io.BytesIO(line.encode()))]
        assert b"".join(pieces).decode() == line.replace(key, "[redacted]"), begin


@pytest.mark.parametrize(("rule", "text"), SAMPLES, ids=[f"{rule}-{n}" for n, (rule, _) in enumerate(SAMPLES)])
@pytest.mark.parametrize("lines", [1, 3])
def test_p17_a_secret_in_the_lines_of_a_text_is_found(rule, text, lines, monkeypatch):
    """Of every rule, also those that are recognised by a line before, and wherever the text is cut."""
    monkeypatch.setattr(scrub, "_PIECE", 1024)
    monkeypatch.setattr(scrub, "_OVERLAP", 1024)
    before = "a line of words\n" * (lines * 11)
    pieces = list(scrub._pieces(io.BytesIO(f"{before}{text}\n{before}".encode())))
    assert [name for _, spans in pieces for _, _, name in spans] == [rule]


def test_p17_a_key_in_several_lines_of_a_text_is_found(tmp_path):
    """The chat history of an agent is plain text; what follows is found in its line."""
    log = tmp_path / "chat.md"
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEa1B2c3D4\n" * 40 + "-----END RSA PRIVATE KEY-----"
    log.write_text(f"one\n{key}\nthen {TOKEN}\nlast")
    found = scrub_file(str(log), copy=str(tmp_path / "clean.md"))
    assert [(f.rule, f.line, f.offset) for f in found.findings] == [("private-key", 2, 0), ("github-token", 44, 5)]
    assert (tmp_path / "clean.md").read_text() == "one\n[redacted]\nthen [redacted]\nlast"


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("is_named", [False, True])
def test_p17_a_log_and_its_packed_twin_are_both_searched(log, tmp_path, suffix, is_named):
    """Reports read one of them; a secret may be in either. Their copies have different names."""
    packed = log.with_name(f"s.jsonl{suffix}")
    data = event("another") + event(TOKEN)
    packed.write_bytes(gzip.compress(data.encode()) if suffix == ".gz" else zstd_module("this").compress(data.encode()))
    clean = tmp_path / "clean"
    found = list(scrub_logs([str(packed if is_named else log.parent)], {}, copies=str(clean)))
    assert {item.path: item.counts["github-token"] for item in found} == {str(log): 2, str(packed): 1}
    assert sorted(os.listdir(clean)) == sorted(["s.jsonl", f"s{suffix}.jsonl"])
    assert (clean / f"s{suffix}.jsonl").read_text() == data.replace(TOKEN, "[redacted]")


def test_no_copy_replaces_another(log, tmp_path):
    """Also where a file has the name that a packed twin would get."""
    for number, name in enumerate(("s.jsonl.gz", "s.gz.jsonl")):
        data = event(f"text {number}").encode()
        log.with_name(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    found = list(scrub_logs([str(log.parent)], {}, copies=str(tmp_path / "clean")))
    assert {os.path.basename(item.path): os.path.basename(item.copy) for item in found} == {
        "s.jsonl": "s.jsonl", "s.jsonl.gz": "s.gz.gz.jsonl", "s.gz.jsonl": "s.gz.jsonl"
    }  # fmt: skip
    assert sorted(os.listdir(tmp_path / "clean")) == ["s.gz.gz.jsonl", "s.gz.jsonl", "s.jsonl"]


OTHER = "ghp_" + "x1Y2" * 9
REFUSED = {
    "unique values": "CREATE TABLE t (v TEXT UNIQUE); INSERT INTO t VALUES ('{0}'), ('{1}')",
    "unique index": "CREATE TABLE t (v TEXT); CREATE UNIQUE INDEX i ON t (v); INSERT INTO t VALUES ('{0}'), ('{1}')",
    "primary keys": "CREATE TABLE t (v TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO t VALUES ('{0}'), ('{1}')",
    "an index of texts that are not kept": "CREATE VIRTUAL TABLE t USING fts5(v, content='');"
    "CREATE TABLE u (v TEXT); INSERT INTO u VALUES ('{0}'); INSERT INTO t (v) VALUES ('{0}')",
    "an index of a table that is gone": "CREATE TABLE u (v TEXT); INSERT INTO u VALUES ('{0}');"
    "CREATE VIRTUAL TABLE t USING fts5(v, content=gone)",
    "a generated column that makes one": "CREATE TABLE t (a TEXT, v TEXT AS ('ghp_' || a)); INSERT INTO t (a) VALUES (substr('{0}', 5))",
    "the schema": "CREATE TABLE t (v TEXT DEFAULT '{0}')",
}
CLEANED = {
    "generated columns": "CREATE TABLE t (v TEXT, g TEXT AS (v || '!') STORED, h AS (upper(g))); INSERT INTO t (v) VALUES ('{0}')",
    "a check": "CREATE TABLE t (v TEXT CHECK (length(v) = 40)); INSERT INTO t VALUES ('{0}')",
    "a strict table": "CREATE TABLE t (v TEXT, b BLOB, n INT) STRICT; INSERT INTO t VALUES ('{0}', x'00ff', 5)",
    "an index of another table": "CREATE TABLE u (v TEXT); INSERT INTO u VALUES ('{0}');"
    "CREATE VIRTUAL TABLE t USING fts5(v, content=u); INSERT INTO t(t) VALUES ('rebuild')",
    "an index of a view": "CREATE TABLE u (w TEXT); INSERT INTO u VALUES ('{0}');"
    "CREATE VIEW d AS SELECT rowid, w AS v FROM u; CREATE VIRTUAL TABLE t USING fts5(v, content=d, content_rowid=rowid)",
    "words of an index": "CREATE VIRTUAL TABLE t USING fts5(v); INSERT INTO t VALUES ('{0}');"
    "CREATE VIRTUAL TABLE w USING fts5vocab(t, row)",
    "an old index": "CREATE VIRTUAL TABLE t USING fts4(v); INSERT INTO t VALUES ('{0}')",
    "a trigger": "CREATE TABLE t (v TEXT); INSERT INTO t VALUES ('{0}');"
    "CREATE TRIGGER w BEFORE UPDATE ON t BEGIN SELECT RAISE(ABORT, 'no'); END",
    "a view": "CREATE TABLE t (v TEXT); INSERT INTO t VALUES ('{0}'); CREATE VIEW d AS SELECT v FROM t",
    "text that is no UTF-8": "CREATE TABLE t (v TEXT); INSERT INTO t VALUES (CAST(CAST('{0} ' AS BLOB) || x'ff' AS TEXT))",
    "another encoding": "PRAGMA encoding = 'UTF-16'; CREATE TABLE t (v TEXT); INSERT INTO t VALUES ('{0}')",
    "a write-ahead log": "PRAGMA journal_mode = WAL; CREATE TABLE t (v TEXT); INSERT INTO t VALUES ('{0}')",
    "odd names": 'CREATE TABLE "a ""b" ("c ""d" TEXT); INSERT INTO "a ""b" VALUES (\'{0}\')',
}


def made(path, script):
    connection = sqlite3.connect(path)
    connection.executescript(script.replace("{0}", TOKEN).replace("{1}", OTHER))
    return connection


def bytes_below(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file()).replace(b"\0", b"").lower()


@pytest.mark.parametrize("script", REFUSED.values(), ids=REFUSED.keys())
def test_p17_a_database_whose_secrets_cannot_be_replaced_is_not_copied(script, tmp_path):
    """Nothing of it is left, and the reason is named; the places of its secrets are, too."""
    made(tmp_path / "logs.db", script).close()
    found = scrub_file(str(tmp_path / "logs.db"), copy=str(tmp_path / "clean" / "logs.db"))
    assert found.problem.startswith("not copied: ")
    assert (found.copy, list((tmp_path / "clean").iterdir())) == ("", [])
    assert found.counts["github-token"] >= 1
    assert "a1B2" not in found.problem


@pytest.mark.parametrize("content", ["''", "gone"])
def test_p17_an_index_that_cannot_be_made_anew_is_named(content, tmp_path):
    """Its words may be a secret's, also where no text holds one."""
    made(tmp_path / "logs.db", f"CREATE VIRTUAL TABLE words USING fts5(v, content={content})").close()
    found = scrub_file(str(tmp_path / "logs.db"), copy=str(tmp_path / "clean" / "logs.db"))
    assert found.problem.startswith("not copied: the words in the search index words are not searched, and ")
    assert (found.copy, found.counts, list((tmp_path / "clean").iterdir())) == ("", {}, [])


@pytest.mark.parametrize("script", CLEANED.values(), ids=CLEANED.keys())
def test_p17_a_database_of_any_kind_is_copied_without_its_secrets(script, tmp_path):
    """No byte of a secret is in the copy, which SQLite finds sound; the original stays."""
    with closing(made(tmp_path / "logs.db", script)):  # open: what is in a write-ahead log stays there
        read = [path for path in tmp_path.iterdir() if not path.name.endswith("-shm")]  # where readers are written down
        before = [path.read_bytes() for path in read]
        found = scrub_file(str(tmp_path / "logs.db"), copy=str(tmp_path / "clean" / "logs.db"))
        assert [path.read_bytes() for path in read] == before
    assert (found.problem, os.listdir(tmp_path / "clean")) == ("", ["logs.db"])
    assert found.counts["github-token"] >= 1
    assert b"a1b2a1b2" not in bytes_below(tmp_path / "clean")
    with closing(sqlite3.connect(found.copy)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_values_without_a_secret_stay_as_they_are(tmp_path):
    """Beside one with a secret, in the same column: numbers, blobs, nothing, and text that is no UTF-8."""
    values = "(5), (2.5), (NULL), (x'00ff'), (CAST(x'61ff62' AS TEXT)), ('{0}')"
    made(tmp_path / "logs.db", f"CREATE TABLE t (v); INSERT INTO t VALUES {values}").close()
    found = scrub_file(str(tmp_path / "logs.db"), copy=str(tmp_path / "clean.db"))
    asked = "SELECT typeof(v), hex(v) FROM t WHERE rowid < 6"
    with closing(sqlite3.connect(found.copy)) as clean, closing(sqlite3.connect(found.path)) as original:
        assert clean.execute(asked).fetchall() == original.execute(asked).fetchall()
        assert clean.execute("SELECT v FROM t WHERE rowid = 6").fetchone() == ("[redacted]",)


KILLED = """
import os, signal, sys
from sessionlog.sources import scrub

after, number = sys.argv[3], int(sys.argv[4])
real = getattr(scrub, after)

def stopped(*args):
    real(*args)
    os.kill(os.getpid(), number)

setattr(scrub, after, stopped)
scrub.scrub_file(sys.argv[1], copy=sys.argv[2])
"""


@pytest.mark.parametrize("after", ["_own_columns", "_replace_values"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_p17_a_copy_that_is_stopped_leaves_nothing(database, tmp_path, after, number):
    """Not under a temporary name either: the file has none while it holds a secret."""
    clean = tmp_path / "clean"
    clean.mkdir()
    command = [sys.executable, "-c", KILLED, str(database), str(clean / "logs.db"), after, str(int(number))]
    assert subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode != 0
    assert list(clean.iterdir()) == []


def test_p17_secrets_at_the_cut_of_a_line_of_megabytes_are_found(tmp_path):
    """With the sizes of pieces that users have: values known by name, keys, and tokens, close together."""
    key = "-----BEGIN PRIVATE KEY-----\\n" + "MIIEa1B2c3D4\\n" * 20 + "-----END PRIVATE KEY-----"
    secrets = [f'"password": "{PASSWORD}"', f'"k": "{key}"', f'"t": "{TOKEN}"']
    many = ", ".join(secrets * 400)
    log = tmp_path / "s.jsonl"
    log.write_text("{" + '"w": "words", ' * ((scrub._PIECE - len(many) // 2) // 14) + many + "}")
    found = scrub_file(str(log), copy=str(tmp_path / "clean.jsonl"))
    assert found.counts == {"password-by-name": 400, "private-key": 400, "github-token": 400}
    clean = (tmp_path / "clean.jsonl").read_text()
    assert [secret for secret in (PASSWORD, TOKEN, "MIIE") if secret in clean] == []


@pytest.mark.parametrize("text", [f"{TOKEN} " * 40_000, ("-----BEGIN PRIVATE KEY-----" + "MIIE" * 9 + "\n") * 40_000])
def test_p17_many_secrets_take_linear_time(text):
    """In one line, and each to the end of its line: neither is read again for each of them."""
    started = time.thread_time()
    found = [spans for _, spans in scrub._pieces(io.BytesIO(text.encode()))]
    search = scrub._Search()
    assert b"".join(scrub._clean_pieces(io.BytesIO(text.encode()), search)).count(b"[redacted]") == 40_000
    assert (sum(map(len, found)), search.counts.total()) == (40_000, 40_000)
    assert time.thread_time() - started < 5
