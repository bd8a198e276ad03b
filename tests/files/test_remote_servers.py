"""Remote logs of real servers on the loopback: Azure's blobs, Google's storage, and files over SSH.

Each server is of others: azurite, gcp-storage-emulator, OpenSSH. What is asked of S3 in `test_remote_s3` holds for them.
"""

import getpass
import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sessionlog import aggregate_usage
from sessionlog.cli import main
from sessionlog.files import remote
from tests.files.test_remote import log_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore"),  # of clients and servers
]

NEEDED = "needs an environment of its own: CONTRIBUTING.md"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that azurite has, and its key, which is the same everywhere."""


def free_port():
    """A free port of the loopback."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def running(command, port, **options):
    """A server, from when it listens until the context ends."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options) as server:
        try:
            until = time.monotonic() + 60
            while server.poll() is None:
                with socket.socket() as one:
                    if one.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert time.monotonic() < until
                time.sleep(0.1)
            yield server
        finally:
            server.terminate()


@contextmanager
def azure(folder, patch):
    """A container of azurite."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip(f"azurite {NEEDED}")
    adlfs, port = pytest.importorskip("adlfs", reason=NEEDED), free_port()
    url = f"http://127.0.0.1:{port}/{ACCOUNT}"
    patch.setenv(
        "AZURE_STORAGE_CONNECTION_STRING",
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={url};",
    )
    command = [program, "--blobPort", str(port), "--location", str(folder), "--silent", "--skipApiVersionCheck"]
    with running(command, port):
        adlfs.AzureBlobFileSystem.clear_instance_cache()
        system = adlfs.AzureBlobFileSystem()
        system.mkdir("bucket")
        yield system, "az://bucket/team"


@contextmanager
def google(folder, patch):
    """A bucket of gcp-storage-emulator."""
    gcsfs, port = pytest.importorskip("gcsfs", reason=NEEDED), free_port()
    program = shutil.which("gcp-storage-emulator") or ""
    pytest.importorskip("gcp_storage_emulator", reason=NEEDED)
    patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    patch.setenv("GOOGLE_CLOUD_PROJECT", "test")
    command = [program, "start", "--host=127.0.0.1", f"--port={port}", "--in-memory", "--default-bucket=bucket"]
    with running(command, port, cwd=folder):
        gcsfs.GCSFileSystem.clear_instance_cache()
        yield gcsfs.GCSFileSystem(), "gs://bucket/team"


@contextmanager
def ssh(folder, patch):
    """A folder of OpenSSH's server, which runs as a user without rights if the tests run as root."""
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip(f"sshd {NEEDED}")
    pytest.importorskip("paramiko", reason=NEEDED)
    from fsspec.implementations.sftp import SFTPFileSystem

    user = "nobody" if os.getuid() == 0 else getpass.getuser()
    port = free_port()
    with TemporaryDirectory(dir="/tmp") as home:  # others than its owner can reach it, unlike pytest's folders
        (folder / ".ssh").mkdir()
        key = folder / ".ssh" / "id_ed25519"
        for path in (f"{home}/host", key):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        shutil.copyfile(f"{key}.pub", f"{home}/user.pub")
        Path(home, "config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {home}/host\nAuthorizedKeysFile {home}/user.pub\n"
            f"PidFile none\nStrictModes no\nUsePAM {'yes' if user == 'nobody' else 'no'}\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n"
        )
        Path(home, "logs").mkdir()
        if user == "nobody":
            for name in (".", "host", "user.pub", "config", "logs"):
                shutil.chown(f"{home}/{name}", user)
        patch.delenv("SSH_AUTH_SOCK", raising=False)
        patch.setenv("HOME", str(folder))  # where the client finds its key
        options = {"user": user} if os.getuid() == 0 else {}
        with running([program, "-D", "-f", f"{home}/config"], port, **options):
            SFTPFileSystem.clear_instance_cache()
            system = SFTPFileSystem(host="127.0.0.1", port=port, username=user)
            try:
                yield system, f"sftp://{user}@127.0.0.1:{port}{home}/logs/team"
            finally:
                for one in SFTPFileSystem._cache.values():
                    one.client.close()


class Place:
    """A place of a server, and a local folder with the same logs."""

    def __init__(self, system, url, folder):
        self.system, self.url, self.folder = system, url, folder
        self.local, self.ledger = folder / "local", str(folder / "ledger.sqlite")
        self.root = system._strip_protocol(url)
        self.local.mkdir()
        system.makedirs(self.root, exist_ok=True)

    def put(self, name, data):
        """Write a log here and there."""
        (self.local / name).write_bytes(data)
        self.system.pipe_file(f"{self.root}/{name}", data)

    def remove(self, name):
        """Remove it there; a report over the local folder then counts it as it did."""
        self.system.rm_file(f"{self.root}/{name}")

    def report(self, path=None):
        """What counts, and the problems."""
        report = aggregate_usage(str(path or self.url), ledger=self.ledger if path is None else None, by=["session"])
        rows = sorted((row.keys["session"], row.requests, row.input_tokens, row.output_tokens) for row in report.rows)
        return rows, [(one.kind, one.line) for one in report.problems], report


@pytest.fixture(params=[azure, google, ssh], ids=["az", "gs", "sftp"])
def place(request, tmp_path, monkeypatch):
    """A server of each kind."""
    (tmp_path / "server").mkdir()
    with request.param(tmp_path / "server", monkeypatch) as (system, url):
        yield Place(system, url, tmp_path)


@pytest.fixture
def fetched(monkeypatch):
    """The names of objects whose bytes were asked for."""
    names, fetch = [], remote.Place.fetch

    def noted(place, url, *given):
        names.append(url.rpartition("/")[2])
        return fetch(place, url, *given)

    monkeypatch.setattr(remote.Place, "fetch", noted)
    return names


def test_a_place_counts_what_a_local_folder_does(place, fetched):
    """First, unchanged, with one object grown, one damaged and one gone; only what is new is fetched."""
    for number in range(12):
        place.put(f"a{number}.jsonl", log_of(100 + number).replace(b'"s"', b'"s%d"' % number))
    place.put("long.jsonl", log_of(7, padding=6 << 20).replace(b'"s"', b'"long"'))
    assert place.report()[:2] == place.report(place.local)[:2]
    time.sleep(3)  # as below
    assert len(place.report()[0]) == 13
    fetched.clear()
    assert place.report()[:2] == place.report(place.local)[:2]
    assert fetched == []
    place.put("a0.jsonl", log_of(100, 50).replace(b'"s"', b'"s0"'))
    place.put("a1.jsonl", log_of(101, 9)[:-40].replace(b'"s"', b'"s1"') + b"\n")
    found, problems, _ = place.report()
    assert (found, problems) == place.report(place.local)[:2]
    assert [kind for kind, _ in problems] != []
    assert set(fetched) == {"a0.jsonl", "a1.jsonl"}
    time.sleep(3)  # where there is only a time of writing, what was read in that second is read once more
    place.report()
    place.remove("a2.jsonl")
    fetched.clear()
    rows, _, report = place.report()
    assert (rows, report.archived_sessions, set(fetched)) == (found, 1, set())


def test_an_object_that_vanishes_or_cannot_be_read_is_named(place, monkeypatch):
    """After the listing: a problem with its URL, and the others count."""
    place.put("a.jsonl", log_of(100))
    place.put("b.jsonl", log_of(1).replace(b'"s"', b'"b"'))
    listed = remote.Place._list

    def list_and_remove(self):
        listed(self)
        place.remove("b.jsonl")

    monkeypatch.setattr(remote.Place, "_list", list_and_remove)
    rows, problems, report = place.report()
    assert (rows, [kind for kind, _ in problems]) == ([("a", 1, 100, 1)], ["unreadable"])
    assert str(report.problems[0]).startswith(f"{place.url}/b.jsonl unreadable ")
    assert "vanished after it was listed" in str(report.problems[0])


def test_an_export_there_is_a_place(place, tmp_path, capsys):
    """Written through the same client, checked, and counted as the ledger counts."""
    pytest.importorskip("duckdb")
    place.put("a.jsonl", log_of(100, 3))
    target = f"{place.url.rpartition('/')[0]}/export"
    ledger = str(tmp_path / "own.sqlite")
    arguments = ["export", target, "--parquet", "--path", str(place.local)]
    assert (main(arguments), main(arguments)) == (0, 0)
    assert main(["check", target]) == 0
    assert (
        aggregate_usage(target).totals.input_tokens
        == aggregate_usage(str(place.local), ledger=ledger).totals.input_tokens
        == 103
    )
    capsys.readouterr()
