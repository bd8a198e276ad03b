"""Export to an object store: a server of S3's protocol on the loopback; skipped where moto and s3fs are missing."""

import json
from datetime import timedelta

import pytest

pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")

from sessionlog import aggregate_usage
from sessionlog.errors import NotExported
from sessionlog.export import manifests
from tests.export.machines import Machine, export_at_once
from tests.export.test_parquet import add_log, lost_state, make_machine

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture
def store(monkeypatch):
    """An empty bucket of a server on the loopback."""
    server_of = pytest.importorskip("moto.server", reason="moto is not installed")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")
    server = server_of.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    system.mkdir("bucket")
    yield system
    system.rm("bucket", recursive=True)  # the server's state is this process's, and stays
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def newest(store):
    """The document of the newest manifest."""
    return json.loads(store.cat_file(max(store.find("bucket/team/manifest"))))


def test_a_store_has_what_a_folder_has(store, tmp_path, monkeypatch):
    """First, unchanged and grown exports, a lost state, merging, and removal of what was merged."""
    machine = make_machine(tmp_path, "a")
    machine.team = "s3://bucket/team"
    for output in (20, 30):
        add_log(machine, output=output, ended=False)
        assert machine.export().usage == 1
    assert (machine.export().files, lost_state(machine).export().unchanged) == (0, 3)
    assert machine.export(compact=True).merged == 2
    monkeypatch.setattr(manifests, "KEPT", timedelta(seconds=-5))
    machine.export()
    held = {f"bucket/team/{file['path']}" for file in newest(store)["files"]}
    assert {path for path in store.find("bucket") if path.endswith(".parquet")} == held
    assert len(held) == 3


def test_a_bucket_is_not_made_by_a_slip(store, tmp_path):
    """A wrong name is an error with the place."""
    machine = make_machine(tmp_path, "a")
    machine.team = "s3://bukcet/team"
    add_log(machine)
    with pytest.raises(NotExported, match="s3://bukcet/team"):
        machine.export()
    assert "bukcet" not in store.ls("")


def test_a_store_that_refuses_has_nothing_that_counts(store, tmp_path, monkeypatch):
    """An upload that fails is an error, without a manifest; the next export completes it."""
    machine = make_machine(tmp_path, "a")
    machine.team = "s3://bucket/team"
    add_log(machine)
    refused = iter([True])

    def throttled(method, *given, **options):
        if method == "upload_part" and next(refused, False):
            raise OSError(16, "SlowDown")
        return call(method, *given, **options)

    call = store.call_s3
    monkeypatch.setattr(store, "call_s3", throttled)
    with pytest.raises(NotExported):
        machine.export()
    assert store.find("bucket/team/manifest") == []
    assert machine.export().usage == 1


def test_exports_at_once_lose_nothing(store, tmp_path):
    """Of two machines, and of one of them with another folder for state, in processes that begin together."""
    machine, other = make_machine(tmp_path, "a"), make_machine(tmp_path, "b")
    second = Machine(machine.folder, machine.home, machine.team)
    second.env = {**machine.env, "XDG_STATE_HOME": f"{tmp_path}/second"}
    machines = (machine, second, other)
    for one in machines:
        one.team = "s3://bucket/team"
    for turn in range(3):
        add_log(machine, f"a{turn}")
        add_log(other, f"b{turn}")
        export_at_once(machines)
        report = aggregate_usage(machine.team, by=["session"])
        assert {row.keys["session"]: row.requests for row in report.rows} == {
            f"{name}{number}": 1 for name in "ab" for number in range(turn + 1)
        }
        assert report.problem_count == 0
    assert [one.export().deleted for one in machines] == [0, 0, 0]
