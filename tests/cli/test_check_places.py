"""`sessionlog check PLACE`: an export's files against the digests in its manifests."""

import shutil
from pathlib import Path

import pytest

duckdb = pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")

from tests.export.test_parquet import add_log, make_machine  # noqa: E402 - after the skip


@pytest.fixture
def team(tmp_path):
    """What two machines have exported: three files and a manifest of each."""
    for name in "ab":
        machine = make_machine(tmp_path, name)
        add_log(machine, name)
        machine.export()
    return Path(machine.team)


def smallest(team, pattern):
    """The first file of a pattern."""
    return min(team.glob(pattern))


def flip(path):
    """Change one bit in the middle of a file, whose size stays."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_whole_place_has_no_damage(cli, team):
    """Exit code 0, and the numbers of files and rows."""
    files = len([path for path in team.rglob("*") if path.is_file()])
    ran = cli("check", team)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"{files} files, ")
    assert ran.out.endswith(" rows: no damage\n")


@pytest.mark.parametrize(
    ("pattern", "change", "words"),
    [
        ("usage/**/*.parquet", flip, "it is not what was exported, by its SHA-256"),
        ("usage/**/*.parquet", Path.unlink, "it is missing; a manifest lists it"),
        ("sessions/**/*.parquet", lambda path: path.write_bytes(path.read_bytes()[:99]), "99 bytes, "),
        ("manifest/**/*.json", lambda path: path.write_text(path.read_text().replace("a", "b", 1)), "manifest is damaged"),
        ("manifest/**/*.json", lambda path: path.write_text(path.read_text() + " "), "it is not what was exported"),
    ],
)  # fmt: skip
def test_a_damaged_or_missing_file_is_named(cli, team, pattern, change, words):
    """Exit code 1, its path and what is wrong; the others are whole."""
    path = smallest(team, pattern)
    change(path)
    ran = cli("check", team)
    assert (ran.code, ran.err) == (1, "")
    [line] = [line for line in ran.out.splitlines() if line.startswith("✘")]
    assert line.startswith(f"✘ {path} unreadable: ")
    assert words in line
    assert ran.out.count("1 damaged piece\n") == 1


def test_a_file_that_no_manifest_lists_is_a_note(cli, team):
    """It does not count, so it is no damage; --strict takes it for a finding."""
    path = smallest(team, "usage/**/*.parquet").with_name("other.parquet")
    path.write_bytes(b"PAR1")
    ran = cli("check", team)
    assert ran.code == 0
    assert "notes: foreign in 1 (--notes shows them)" in ran.out
    ran = cli("check", team, "--strict")
    assert ran.code == 1
    assert f"· {path} foreign: no manifest lists it" in ran.out


def test_files_of_an_older_manifest_are_no_finding(cli, tmp_path):
    """Readers that began with it may still need them, so merging leaves them for a day."""
    machine = make_machine(tmp_path, "a")
    for output in (20, 30):
        add_log(machine, output=output, ended=False)
        machine.export()
    assert machine.export(compact=True).merged == 2
    assert cli("check", machine.team, "--strict").code == 0


def test_events_are_compared_too(cli, tmp_path):
    """With the manifests of all exports of events, which are in a folder of their own."""
    machine = make_machine(tmp_path, "a")
    add_log(machine)
    assert cli("export", machine.team, "--parquet", "--events", "--path", machine.env["SESSIONLOG_DIR"]).code == 0
    assert cli("check", machine.team, "--strict").code == 0
    path = smallest(Path(machine.team), "events/**/*.parquet")
    flip(path)
    ran = cli("check", machine.team)
    assert ran.code == 1
    assert f"✘ {path} unreadable: it is not what was exported" in ran.out
    path.unlink()
    assert f"✘ {path} unreadable: it is missing" in cli("check", machine.team).out


def test_json_has_every_file_with_its_rows(cli, team):
    """The schema of every check; rows in place of events."""
    flip(smallest(team, "usage/**/*.parquet"))
    ran = cli("check", team, "--json")
    assert (ran.code, ran.json["schema"], ran.json["damaged_files"]) == (1, "sessionlog.check/1", 1)
    assert sum(file["rows"] for file in ran.json["files"]) > 0
    assert [file["counts"] for file in ran.json["files"] if file["problems"]] == [{"unreadable": 1}]


def test_what_is_damaged_is_exported_again_without_the_manifests(cli, tmp_path):
    """As the page advises where there is no copy: the next export writes all that the ledger has."""
    machine = make_machine(tmp_path, "a")
    add_log(machine)
    machine.export()
    flip(smallest(Path(machine.team), "usage/**/*.parquet"))
    shutil.rmtree(smallest(Path(machine.team), "manifest/v=1/machine=*"))
    assert machine.export().usage == 1
    assert cli("check", machine.team).code == 0


def test_an_export_cannot_be_repaired(cli, team):
    """Exit code 2 with what to do; a place and logs are not checked in one call."""
    ran = cli("check", team, "--repair")
    assert (ran.code, "restore its damaged files from a copy" in ran.err) == (2, True)


def test_a_place_behind_a_url_is_checked(cli, team):
    """By the same rule."""
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    memory = fsspec.filesystem("memory")
    memory.put(str(team), "/checked/team", recursive=True)
    try:
        assert cli("check", "memory://checked/team", "--strict").code == 0
        memory.rm(min(memory.glob("/checked/team/usage/**/*.parquet")))
        ran = cli("check", "memory://checked/team")
        assert ran.code == 1
        assert "✘ memory://checked/team/usage/" in ran.out
    finally:
        memory.rm("/checked", recursive=True)
