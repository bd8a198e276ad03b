"""The only code that opens, appends to, locks, syncs and renames files.

Callers have its names from here: `from sessionlog import files`. Each module has one idea:

- `appending`: a log open for appending, one write(2) per line
- `whole_files`: a file written whole or not at all, and temporary files
- `replace`: a log replaced while others write to it
- `reading`: logs and settings opened for reading
- `paths`: what is at a path, and folders
- `descriptors`, `file_lock`: what the others do with open files
- `remote`, `urls` and others: logs in stores, by their URLs

What docs/promises.md promises about files is kept here: regular files only, no symlink followed when writing, 0600
files in 0700 folders, one write(2) per line, an unfinished line never joined to the next one. Tests inject faults here:
they replace `os` and `fcntl` in these modules.
"""

from sessionlog.files.appending import (
    NOT_APPENDED,
    AppendFile,
    FileGoneError,
    append_private,
    check_log,
    check_owner,
    work_folder,
    write_all,
)
from sessionlog.files.descriptors import (
    BUFFER,
    close,
    duplicate,
    end_of_lines,
    open_flags,
    read_at,
    read_tail,
    sync,
    sync_directory,
)
from sessionlog.files.file_lock import fcntl, lock, unlock
from sessionlog.files.paths import (
    absolute_path,
    exists,
    find_paths,
    identity_of,
    is_directory,
    is_file,
    list_names,
    make_directories,
    make_private,
    real_path,
    scan_folder,
    stat_path,
    walk_folder,
)
from sessionlog.files.reading import open_log, read_small, reason_of, stat_open, why_absent
from sessionlog.files.urls import VERSIONED, is_url
from sessionlog.files.whole_files import (
    copy_file,
    open_temporary,
    remove_directory,
    remove_file,
    reopen_temporary,
    replace_file,
    replace_files,
    temporary_directory,
    write_temporary,
)

__all__ = [
    "BUFFER", "NOT_APPENDED", "VERSIONED", "AppendFile", "FileGoneError", "absolute_path", "append_private",
    "check_log", "check_owner", "close", "copy_file", "duplicate", "end_of_lines", "exists", "fcntl", "find_paths",
    "identity_of", "is_directory", "is_file", "is_url", "list_names", "lock", "make_directories", "make_private",
    "open_flags", "open_log", "open_temporary", "read_at", "read_small", "read_tail", "real_path", "reason_of",
    "remove_directory", "remove_file", "reopen_temporary", "replace_file", "replace_files", "scan_folder", "stat_open",
    "stat_path", "sync", "sync_directory", "temporary_directory", "unlock", "walk_folder", "why_absent", "work_folder",
    "write_all", "write_temporary",
]  # fmt: skip
