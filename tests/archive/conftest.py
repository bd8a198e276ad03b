"""What tests of the archive share."""

import pytest

from sessionlog import files


@pytest.fixture
def spoiling_disk(monkeypatch):
    """A disk that changes a bit of each file in its middle."""
    whole = files.write_temporary

    def spoiled(path, pieces, **options):
        content = bytearray(b"".join(pieces))
        content[len(content) // 2] ^= 1
        return whole(path, [bytes(content)], **options)

    monkeypatch.setattr(files, "write_temporary", spoiled)
