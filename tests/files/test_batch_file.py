"""BatchFile: batches of values in a temporary file, which another process may read."""

import pickle

from sessionlog.files.batch_file import BatchFile


def test_values_travel_between_processes(tmp_path):
    """By the name of their file, which then has none, or as bytes."""
    for folder in (None, str(tmp_path)):
        sent = BatchFile(folder)
        for number in range(3):
            sent.add([("a", number, None, 1.5)])
        taken = pickle.loads(pickle.dumps(sent))
        assert list(taken) == [[("a", number, None, 1.5)] for number in range(3)]
        assert list(taken) == list(taken)
    assert list(tmp_path.iterdir()) == []
