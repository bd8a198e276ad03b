"""Every log can be kept, and what is kept is replayed as the original was."""

import json
import os
import shutil
import sqlite3
import stat
from functools import partial
from pathlib import Path

import pytest

from sessionlog import files
from sessionlog.archive import keep, writing
from sessionlog.archive.collect import SMALL
from sessionlog.archive.find import open_session
from sessionlog.archive.keep import DAY_NS, archive_logs
from sessionlog.archive.manifest import archive_folder, read_manifest
from sessionlog.archive.pack import is_whole
from sessionlog.engine.shares import map_shares
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.sources.discover import discover
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import all_sources, choose_sources
from tests.sources.homes import LONG_AGO, build_home, environment
from tests.sources.logs import answered, ended, start, write_log
from tests.turns import cases_by_turns

NOW_NS = (LONG_AGO + 86_400 * 30) * 10**9


def archived(env, **options):
    """Keep all closed logs of an environment, a month after they were written."""
    return archive_logs(archive_folder(env), env, **{"now_ns": NOW_NS} | options)


def told(log, session_id):
    """A session as it is replayed; times of problems are none."""
    return [item if isinstance(item, Problem) else (item.type, item.ts, item.seq, item.data)
            for item in log.source.read(log.path, session_id)]  # fmt: skip


def sessions_of(env):
    """(path, session) → what each log of an environment tells."""
    found = {}
    for log in discover(env, all_sources()):
        if isinstance(log, Log):
            try:
                found |= {(log.path, name): told(log, name) for name in log.source.name_sessions(log.path)}
            except LogNotReadable:
                continue
    return found


def everything_in(folder):
    """Every file under a folder, with its bytes, mode and times."""
    states = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            status = os.stat(path)
            with open(path, "rb") as file:
                states[path] = (file.read(), status.st_mode, status.st_mtime_ns, status.st_ino)
    return states


@pytest.mark.parametrize("case", cases_by_turns(4, turn=1))
def test_what_is_kept_is_replayed_as_it_was(case, tmp_path):
    """Every log of every agent: kept, then all originals deleted, then read from the archive."""
    home = build_home(case, tmp_path)
    env = environment(case, home) | {"XDG_DATA_HOME": str(tmp_path / "data")}
    if "XDG_DATA_HOME" in environment(case, home):
        pytest.skip("the case has a data folder of its own")
    if ".local" in os.listdir(home):
        shutil.copytree(home / ".local" / "share", tmp_path / "data", dirs_exist_ok=True, copy_function=shutil.copy2)
    originals, before = everything_in(tmp_path), sessions_of(env)
    done = archived(env)
    assert [problem for problem in done.problems if problem.kind == "not_archived"] == []
    assert everything_in(tmp_path).items() >= originals.items()
    for place in [home, *(tmp_path / "data").glob("[!s]*")]:
        shutil.rmtree(place)
    entries = read_manifest(archive_folder(env))
    for (path, session_id), events in before.items():
        entry = entries[next(key for key in entries if key[1] == os.path.abspath(path))]
        assert session_id in entry.sessions
        with open_session(path, None, env) as (log, session, found):
            assert (session, found) == (None, entry)
            if path.endswith("session-store.db"):  # without the session's log beside it, it has the start, too
                assert [one[0] for one in told(log, session_id)] == [one[0] for one in events]
            else:
                assert told(log, session_id) == events
        with open_session(session_id, None, env) as (log, session, found):
            assert session == session_id
            assert (found.path, told(log, session)) in [(p, e) for (p, s), e in before.items() if s == session_id]


@pytest.fixture
def env(tmp_path):
    """An environment with a folder for our own logs."""
    return {"HOME": str(tmp_path), "SESSIONLOG_DIR": str(tmp_path / "logs")}


@pytest.fixture
def log(tmp_path):
    """One log of ours, written long ago."""
    return write_log(tmp_path / "logs" / "s-1.jsonl", start(), answered(content="hello"))


def grow(path, *items, when=LONG_AGO + 60):
    """Append events to a log, long ago."""
    with open(path, "ab") as file:
        file.writelines(json.dumps(item | {"seq": 9}).encode() + b"\n" for item in items)
    os.utime(path, (when, when))


def packs_in(env):
    """The entries' files."""
    return sorted(name for _, _, names in os.walk(archive_folder(env)) for name in names if name.endswith(".tar.zst"))


def test_an_unchanged_log_is_kept_once(env, log, monkeypatch):
    """The second time nothing is opened but the manifest."""
    assert [entry.path for entry in archived(env).kept] == [log]
    opened = []
    monkeypatch.setattr(writing, "contents_of", lambda *given: opened.append(given))
    done = archived(env)
    assert (done.kept, done.unchanged, opened) == ([], 1, [])
    assert len(packs_in(env)) == 1


def test_a_log_that_is_written_to_is_left_for_later(env, log):
    """Closed is what nobody has written to for a day, or for as long as is asked."""
    os.utime(log, ns=(NOW_NS - DAY_NS + 1, NOW_NS - DAY_NS + 1))
    assert (archived(env).open, packs_in(env)) == (1, [])
    assert len(archived(env, closed_ns=DAY_NS // 2).kept) == 1


def test_a_longer_log_takes_the_place_of_its_beginning(env, log):
    """Only when all of the older version is in the newer one."""
    first = archived(env).kept[0]
    grow(log, ended())
    done = archived(env)
    assert (done.replaced, [entry.replaces for entry in done.kept]) == (1, [(first.version,)])
    assert len(packs_in(env)) == 1
    assert done.kept[0].version != first.version


def test_a_rewritten_log_is_kept_beside_the_older_version(env, log):
    """What it said before is lost nowhere else."""
    first = archived(env).kept[0]
    with open(log, "r+b") as file:
        file.seek(20)
        file.write(b"X")
    grow(log, ended())
    done = archived(env)
    assert (done.replaced, len(packs_in(env))) == (0, 2)
    assert is_whole(os.path.join(archive_folder(env), first.name), first)
    assert read_manifest(archive_folder(env))["native", log] == done.kept[0]


def test_a_rewrite_that_sets_size_and_mtime_back_is_kept_too(env, log):
    """Such a log is not unchanged."""
    status = os.stat(log)
    assert len(archived(env).kept) == 1
    with open(log, "r+b") as file:
        file.seek(20)
        file.write(b"X")
    os.utime(log, ns=(status.st_atime_ns, status.st_mtime_ns))
    done = archived(env)
    assert (done.unchanged, len(done.kept), len(packs_in(env))) == (0, 1, 2)


def test_a_touched_log_is_the_same_content(env, log):
    """It gets a new line in the manifest and no new file, and is unchanged from then on."""
    version = archived(env).kept[0].version
    os.utime(log, (LONG_AGO + 5, LONG_AGO + 5))
    done = archived(env)
    assert [(entry.version, entry.replaces) for entry in done.kept] == [(version, ())]
    assert (len(packs_in(env)), archived(env).unchanged) == (1, 1)


def test_a_pack_that_another_run_replaces_meanwhile_gets_no_line(env, log, monkeypatch):
    """The latest entry of a log has its pack, also where two runs are at work."""
    archived(env)
    os.utime(log, (LONG_AGO + 5, LONG_AGO + 5))
    replace_files, others = files.replace_files, []

    def between(pairs):
        if not others:
            others.append(None)  # what follows is done by the other run
            grow(log, ended())
            others.append(archived(env))
        replace_files(pairs)

    monkeypatch.setattr(keep.files, "replace_files", between)
    done = archived(env)
    assert [problem.kind for problem in done.problems] == ["not_archived"]
    [entry] = read_manifest(archive_folder(env)).values()
    assert entry == others[1].kept[0]
    assert is_whole(os.path.join(archive_folder(env), entry.name), entry)


def openclaw(tmp_path):
    """A log of OpenClaw with its index; (environment, log, index)."""
    home = build_home("openclaw/jsonl", tmp_path)
    env = environment("openclaw/jsonl", home) | {"XDG_DATA_HOME": str(tmp_path / "data")}
    [log, *_] = [item.path for item in discover(env, choose_sources(["openclaw"]))]
    return env, log, os.path.join(os.path.dirname(log), "sessions.json")


def test_what_changes_beside_a_log_is_no_new_version_of_it(tmp_path):
    """Else every log of an agent would be kept again whenever its index is written."""
    env, log, index = openclaw(tmp_path)
    count = len(archived(env).kept)
    with open(index, "w") as file:
        file.write('{"other": {"sessionId": "x"}}')
    done = archived(env)
    assert (done.kept, done.unchanged) == ([], count)
    with open(log, "ab") as file:
        file.write(b'{"type":"custom"}\n')
    os.utime(log, (LONG_AGO + 9, LONG_AGO + 9))
    assert (archived(env).replaced, len(packs_in(env))) == (1, count)


def test_a_large_file_beside_logs_is_not_kept_with_each(tmp_path):
    """The log is, without it."""
    env, log, index = openclaw(tmp_path)
    with open(index, "w") as file:
        file.write(" " * (SMALL + 1))
    archived(env)
    entry = read_manifest(archive_folder(env))["openclaw", log]
    assert [file.path for file in entry.kept] == [log]
    assert index in [file.path for file in entry.files]


def test_everything_is_private(env, log):
    """0600 files in 0700 folders, whatever the umask."""
    old = os.umask(0)
    try:
        archived(env)
    finally:
        os.umask(old)
    for place, folders, names in os.walk(os.path.join(env["HOME"], ".local")):
        assert {stat.S_IMODE(os.stat(os.path.join(place, name)).st_mode) for name in folders} <= {0o700}
        assert {stat.S_IMODE(os.stat(os.path.join(place, name)).st_mode) for name in names} <= {0o600}


def test_the_original_is_only_read(env, log):
    """Not a byte, a time or a neighbour of it changes; a log without write permission is kept as well."""
    os.chmod(log, 0o400)
    os.chmod(os.path.dirname(log), 0o500)
    before = everything_in(os.path.dirname(log))
    try:
        assert len(archived(env).kept) == 1
        assert everything_in(os.path.dirname(log)) == before
    finally:
        os.chmod(os.path.dirname(log), 0o700)


def test_a_full_disk_leaves_no_half_entry(env, log, tmp_path, monkeypatch):
    """It is said for each log, the next one is tried, and the next run keeps both."""
    other = write_log(tmp_path / "logs" / "s-2.jsonl", start(), ended())
    whole = files.write_temporary

    def full(path, pieces, **options):
        def torn():
            yield next(iter(pieces))
            raise OSError(28, "No space left on device")

        return whole(path, torn(), **options)

    monkeypatch.setattr(files, "write_temporary", full)
    done = archived(env)
    assert [(problem.path, problem.kind) for problem in done.problems] == [
        (log, "not_archived"),
        (other, "not_archived"),
    ]
    assert all("no space left" in problem.detail for problem in done.problems)
    assert [name for _, _, names in os.walk(archive_folder(env)) for name in names] == []
    monkeypatch.undo()
    assert len(archived(env).kept) == 2


@pytest.mark.usefixtures("spoiling_disk")
def test_what_cannot_be_read_back_does_not_count(env, log):
    """A disk that changes what it is given is found out at once."""
    [problem] = archived(env).problems
    assert (problem.path, "what was written is not what was read" in problem.detail) == (log, True)
    assert packs_in(env) == []
    assert read_manifest(archive_folder(env)) == {}


def test_a_damaged_entry_is_made_again_from_the_original(env, log):
    """As long as that is there."""
    [entry] = archived(env).kept
    path = os.path.join(archive_folder(env), entry.name)
    with open(path, "r+b") as file:
        file.write(b"\0\0\0\0")
    os.utime(log, (LONG_AGO + 5, LONG_AGO + 5))
    assert len(archived(env).kept) == 1
    assert is_whole(path, entry)


def test_a_log_that_shrinks_while_it_is_read_is_no_entry(env, log, monkeypatch):
    """Half of two versions is neither."""
    seen = keep.list_files

    def shrunk(item):
        found = seen(item)
        os.truncate(log, 10)
        return found

    monkeypatch.setattr(keep, "list_files", shrunk)
    [problem] = archived(env).problems
    assert "shrunk" in problem.detail
    assert packs_in(env) == []


def test_one_bad_log_stops_no_other(env, log, tmp_path):
    """What cannot be read is named, also when its source fails in a way of its own."""
    secret = write_log(tmp_path / "logs" / "s-0.jsonl", start())
    os.chmod(secret, 0)
    done = archived(env)
    if os.geteuid():
        assert [problem.path for problem in done.problems] == [secret]
    assert log in [entry.path for entry in done.kept]


def test_a_failing_source_is_a_problem(env, log):
    """Named with what it raised."""
    from msgspec.structs import replace

    def fails(path):
        raise RuntimeError("boom")

    [native] = [source for source in choose_sources(["native"]) if source.id == "native"]
    [problem] = archived(env, sources=[replace(native, name_sessions=fails)]).problems
    assert problem.detail == "native: RuntimeError: boom"


def test_a_dry_run_writes_nothing(env, log):
    """And says what it would do."""
    done = archived(env, dry_run=True)
    assert ([entry.path for entry in done.kept], done.bytes) == ([log], os.path.getsize(log))
    assert not os.path.exists(archive_folder(env))


def test_only_chosen_sources_are_kept(env, log):
    """By their ids."""
    assert archived(env, sources=choose_sources(["codex"])).kept == []
    assert len(archived(env, sources=choose_sources(["native"])).kept) == 1


def test_progress_counts_every_log(env, log, tmp_path):
    """Kept, unchanged or not."""
    write_log(tmp_path / "logs" / "s-2.jsonl", start())
    calls = []
    archived(env, progress=lambda *call: calls.append(call))
    assert calls == [(1, 2), (2, 2)]


def test_a_database_in_use_is_kept_as_of_one_moment(tmp_path):
    """With what is in its write-ahead log, and without a trace beside it."""
    home = build_home("llm/turns", tmp_path)
    env = environment("llm/turns", home) | {"XDG_DATA_HOME": str(tmp_path / "data")}
    [path] = [str(found) for found in home.rglob("logs.db")]
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE IF NOT EXISTS more (x)")
    writer.execute("INSERT INTO more VALUES (7)")
    writer.commit()
    before = sorted(os.listdir(os.path.dirname(path)))
    [entry] = archived(env, now_ns=NOW_NS * 2).kept
    assert sorted(os.listdir(os.path.dirname(path))) == before
    writer.close()
    shutil.rmtree(home)
    with open_session(path, None, env) as (log, _, _):
        kept = sqlite3.connect(log.path)
        assert kept.execute("SELECT x FROM more").fetchall() == [(7,)]
        kept.close()
    assert [file.path for file in entry.files] == [path, f"{path}-wal"]


def test_secrets_of_settings_are_not_kept(tmp_path):
    """A log needs to know which model was set, and not the key to it."""
    home = build_home("kimi/cli", tmp_path)
    env = environment("kimi/cli", home) | {"XDG_DATA_HOME": str(tmp_path / "data")}
    [config] = [path for path in home.rglob("config.*") if path.suffix in (".toml", ".json")] or [
        home / ".kimi/config.toml"
    ]
    config.write_bytes((config.read_bytes() if config.exists() else b"") + b"\n# sk-abcdefghijklmnopqrstuvwxyz0123\n")
    os.utime(config, (LONG_AGO, LONG_AGO))
    entry = archived(env).kept[0]
    shutil.rmtree(home)
    with open_session(entry.path, None, env) as (log, _, _):
        share = log.path[: -len(entry.path)] + str(config)
        with open(share, "rb") as file:
            assert b"[redacted]" in file.read()


def test_leftovers_of_killed_runs_are_swept(env, log):
    """Those that are old enough to be nobody's."""
    folder = os.path.join(archive_folder(env), "native")
    os.makedirs(os.path.join(archive_folder(env), ".work-1"), 0o700)
    os.makedirs(folder, 0o700)
    for name in (".x.tar.zst.abc", ".y.tar.zst.abc"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"half")
    for path in (os.path.join(folder, ".x.tar.zst.abc"), os.path.join(archive_folder(env), ".work-1")):
        os.utime(path, (LONG_AGO, LONG_AGO))
    fresh = os.path.join(folder, ".y.tar.zst.abc")
    os.utime(fresh, ns=(NOW_NS, NOW_NS))
    archived(env)
    assert [name for name in os.listdir(folder) if name.startswith(".")] == [".y.tar.zst.abc"]
    assert not [name for name in os.listdir(archive_folder(env)) if name.startswith(".")]


@pytest.fixture
def small_logs(tmp_path):
    """Four small logs, written long ago."""
    return [
        write_log(tmp_path / "logs" / f"s-{number}.jsonl", start(), answered(content=f"hello {number}"))
        for number in range(4)
    ]


def test_small_logs_share_a_file(env, small_logs):
    """And each comes back as it was once the originals are gone."""
    done = archived(env)
    assert (len(done.kept), len(packs_in(env))) == (4, 1)
    assert done.packed == sum(
        os.path.getsize(os.path.join(archive_folder(env), "native", name)) for name in packs_in(env)
    )
    before = sessions_of(env)
    shutil.rmtree(os.path.dirname(small_logs[0]))
    for (path, session_id), events in before.items():
        with open_session(session_id, None, env) as (log, session, entry):
            assert (entry.path, told(log, session)) == (path, events)


def test_a_longer_log_leaves_what_others_share_alone(env, small_logs):
    """Its beginning stays with them until they have grown; the touched log refers to what is there."""
    first = {entry.path: entry for entry in archived(env).kept}
    grow(small_logs[0], ended())
    os.utime(small_logs[1], (LONG_AGO + 5, LONG_AGO + 5))
    done = archived(env)
    assert (done.replaced, len(done.kept), len(packs_in(env))) == (1, 2, 2)
    found = read_manifest(archive_folder(env))
    for path in small_logs:
        entry = found["native", path]
        assert is_whole(os.path.join(archive_folder(env), entry.name), entry)
        assert (entry.version == first[path].version) == (path != small_logs[0])
    assert archived(env).unchanged == 4


def test_what_several_processes_keep_is_the_same(env, tmp_path):
    """In the same order, each log with its problems."""
    for number in range(300):
        write_log(tmp_path / "logs" / f"s-{number:03}.jsonl", start(), answered(content=f"hello {number}"))
    calls = []
    done = archived(env, spread=partial(map_shares, jobs=2), progress=lambda *call: calls.append(call))
    before = sessions_of(env)
    assert [entry.path for entry in done.kept] == sorted(path for path, _ in before)
    assert calls == [(number, 300) for number in range(1, 301)]
    assert sorted(map(str, done.kept)) == sorted(map(str, read_manifest(archive_folder(env)).values()))
    assert all(is_whole(os.path.join(archive_folder(env), entry.name), entry) for entry in done.kept)
    assert not [name for name in os.listdir(archive_folder(env)) if name.startswith(".")]
    assert archived(env, spread=partial(map_shares, jobs=2)).unchanged == 300


@pytest.mark.parametrize("together", [1, 2, 3])
def test_a_file_that_logs_share_is_added_with_all_of_them(env, small_logs, monkeypatch, together):
    """However few entries are added at once."""
    monkeypatch.setattr(keep, "_TOGETHER", together)
    done = archived(env)
    assert (len(done.kept), done.problems, len(packs_in(env))) == (4, [], 1)


def test_damage_of_a_shared_file_is_mended_from_the_original(env, small_logs):
    """Of the log that was touched; the file that the others share is not written again."""
    entry = archived(env).kept[1]
    path = os.path.join(archive_folder(env), entry.name)
    with open(path, "r+b") as file:
        file.seek(entry.offset)
        file.write(b"\0\0\0\0")
    os.utime(entry.path, (LONG_AGO + 5, LONG_AGO + 5))
    [again] = archived(env).kept
    assert (again.version, again.shared, is_whole(os.path.join(archive_folder(env), again.name), again)) == (
        entry.version, "", True,
    )  # fmt: skip
    others = [one for one in read_manifest(archive_folder(env)).values() if one.path != entry.path]
    assert all(is_whole(path, one) for one in others)


def test_a_log_that_cannot_be_read_costs_the_others_that_share_nothing(env, small_logs, monkeypatch):
    """It is named, and they are kept."""
    seen = keep.list_files

    def shrunk(item):
        found = seen(item)
        if item.path == small_logs[1]:
            os.truncate(item.path, 10)
        return found

    monkeypatch.setattr(keep, "list_files", shrunk)
    done = archived(env)
    assert [problem.path for problem in done.problems] == [small_logs[1]]
    assert len(done.kept) == 3


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_an_archive_that_others_may_write_to_is_not_used(env, log):
    """Neither for keeping nor for reading."""
    archived(env)
    os.chmod(archive_folder(env), 0o777)
    with pytest.raises(LogNotReadable, match="others may write"):
        archived(env)
    os.unlink(log)
    with pytest.raises(LogNotReadable, match="others may write"), open_session(log, None, env):
        pass


@pytest.mark.parametrize("together", [1, 2, 256])
def test_an_entry_is_added_once_its_pack_is_on_the_disk(env, log, monkeypatch, together):
    """Its bytes are synced before it has its name, and its folder before the manifest names it."""
    for number in range(4):
        write_log(f"{log}-{number}.jsonl", start(), answered(), ended())
    events = []

    def watched(name, of):
        real = getattr(os, name)

        def call(*args, **kwargs):
            events.append((name, of(*args)))
            return real(*args, **kwargs)

        monkeypatch.setattr(os, name, call)

    watched("fsync", lambda fd: os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
    watched("replace", lambda path, _: os.path.basename(path))
    monkeypatch.setattr(keep, "_TOGETHER", together)
    monkeypatch.setattr("sessionlog.sources.spread._SHARE_FILES", together)
    done = archived(env)
    assert len(done.kept) >= 4
    assert sorted(map(str, done.kept)) == sorted(map(str, read_manifest(archive_folder(env)).values()))
    synced, named, added = set(), [], 0
    for name, what in events:
        if name == "replace":
            assert what in synced
            named.append(what)
        elif what == "native":
            added = len(named)
        elif what == "manifest.jsonl":
            assert added == len(named)
        else:
            synced.add(what)
    assert len(named) == len(packs_in(env)) == (5 if together == 1 else 3 if together == 2 else 1)


def test_a_disk_that_fails_at_the_end_costs_the_entries_that_wait(env, log, monkeypatch):
    """They are named, and the next run keeps them."""
    archived(env)
    write_log(f"{log}-2.jsonl", start(), answered(), ended())

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(keep, "add_entries", full)
        done = archived(env)
    assert done.kept == []
    assert [problem.kind for problem in done.problems] == ["not_archived"]
    assert len(archived(env).kept) == 1


def test_logs_are_kept_where_no_thread_can_be_started(env, log, monkeypatch):
    """A container may have a limit: packs are synced one after the other then."""

    def refuse(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr("threading.Thread.start", refuse)
        done = archived(env)
    assert (len(done.kept), done.problems) == (1, [])


def test_what_waits_is_named_whatever_stops_it(env, log, monkeypatch):
    """An entry that waits for others is neither kept nor forgotten."""

    def fail(_):
        raise RuntimeError("a surprise")

    write_log(f"{log}-2.jsonl", start(), answered(), ended())
    for together in (1, 2, 256):
        with monkeypatch.context() as patched:
            patched.setattr(keep, "_TOGETHER", together)
            patched.setattr(files, "replace_files", fail)
            done = archived(env)
        assert done.kept == []
        assert len({problem.path for problem in done.problems}) == 2
    assert len(archived(env).kept) == 2


def make_old(env):
    """Set the mtime of all packs to long ago."""
    for name in packs_in(env):
        os.utime(os.path.join(archive_folder(env), "native", name), (LONG_AGO, LONG_AGO))


def fail_to_add(env, monkeypatch):
    """Keep logs on a disk that is full when the manifest is written."""

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(keep, "add_entries", full)
        assert archived(env).kept == []


def test_a_shared_file_that_no_line_names_is_removed_after_a_day(env, small_logs, monkeypatch):
    """A run that failed or was killed before the manifest's line would leave it for ever."""
    archived(env)
    for path in small_logs:
        grow(path, ended())
    fail_to_add(env, monkeypatch)
    assert len(archived(env).kept) == 4
    assert len(packs_in(env)) == 2  # the one that no line names is young
    make_old(env)
    archived(env)
    assert set(packs_in(env)) == {os.path.basename(one.name) for one in read_manifest(archive_folder(env)).values()}


def test_no_shared_file_is_removed_without_a_manifest(env, small_logs, monkeypatch):
    """The lines are in the files, and are found there."""
    fail_to_add(env, monkeypatch)
    make_old(env)
    os.rename(os.path.dirname(small_logs[0]), os.path.dirname(small_logs[0]) + ".aside")
    archived(env)
    archived(env)
    assert len(packs_in(env)) == 1
    assert len(read_manifest(archive_folder(env))) == 4


def test_a_damaged_line_of_the_manifest_costs_no_shared_file(env, small_logs):
    """Its name is still read in it."""
    archived(env)
    make_old(env)
    path = os.path.join(archive_folder(env), "manifest.jsonl")
    with open(path, "rb") as file:
        lines = file.read()
    with open(path, "wb") as file:
        file.write(lines.replace(b'{"source"', b'{"s\0urce"'))
    os.rename(os.path.dirname(small_logs[0]), os.path.dirname(small_logs[0]) + ".aside")
    assert (archived(env).kept, len(packs_in(env))) == ([], 1)
    os.unlink(path)
    assert len(read_manifest(archive_folder(env))) == 4


def test_a_rewritten_small_log_is_kept_beside_the_older_version(env, small_logs):
    """Also after the manifest was lost: no version after it begins with it."""
    first = archived(env).kept
    for path in small_logs:
        with open(path, "r+b") as file:
            file.seek(20)
            file.write(b"X")
    assert archived(env).replaced == 0
    os.unlink(os.path.join(archive_folder(env), "manifest.jsonl"))
    make_old(env)
    grow(small_logs[0], ended())
    archived(env)
    for path in small_logs:
        grow(path, ended(), when=LONG_AGO + 70)
    archived(env)
    assert all(is_whole(os.path.join(archive_folder(env), entry.name), entry) for entry in first)


def test_small_logs_that_grow_take_the_place_of_their_beginnings(env, small_logs):
    """The file that they shared is deleted once all that is in it was replaced, and is not missed by a new manifest."""
    archived(env)
    for number in range(4):
        for path in small_logs[number % 2 :]:
            grow(path, ended(), when=LONG_AGO + 60 + number)
        done = archived(env, now_ns=NOW_NS + number * DAY_NS)
        assert (done.replaced, done.problems) == (4 - number % 2, [])
        found = read_manifest(archive_folder(env))
        assert all(is_whole(os.path.join(archive_folder(env), entry.name), entry) for entry in found.values())
        assert set(packs_in(env)) == {os.path.basename(entry.name) for entry in found.values()}
    versions = {key: (entry.version, entry.bytes) for key, entry in found.items()}
    os.unlink(os.path.join(archive_folder(env), "manifest.jsonl"))
    again = read_manifest(archive_folder(env))
    assert {key: (entry.version, entry.bytes) for key, entry in again.items()} == versions


def test_a_small_log_that_is_as_it_was_before_has_its_file(env, small_logs):
    """A version that was replaced, and is the last one again, is kept."""
    contents = [Path(path).read_bytes() for path in small_logs]
    first = archived(env).kept
    for path in small_logs:
        grow(path, ended())
    archived(env)
    for path, content in zip(small_logs, contents, strict=True):
        with open(path, "wb") as file:
            file.write(content)
        os.utime(path, (LONG_AGO + 90, LONG_AGO + 90))
    archived(env)
    grow(small_logs[0], ended(), ended(), when=LONG_AGO + 99)
    archived(env)
    found = read_manifest(archive_folder(env))
    assert [found["native", path].version for path in small_logs[1:]] == [entry.version for entry in first[1:]]
    assert all(is_whole(os.path.join(archive_folder(env), entry.name), entry) for entry in found.values())


def test_nothing_is_replaced_by_what_was_not_recorded(env, small_logs, monkeypatch):
    """The beginning is all that there is."""
    first = archived(env).kept
    for path in small_logs:
        grow(path, ended())
    fail_to_add(env, monkeypatch)
    assert all(is_whole(os.path.join(archive_folder(env), entry.name), entry) for entry in first)
