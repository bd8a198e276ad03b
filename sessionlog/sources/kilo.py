"""kilo: the Kilo CLI, which is built on opencode and stores the same under its own name.

Where: `$KILO_DATA_DIR`, else `kilo` in `$XDG_DATA_HOME`, `~/.local/share` and so on: `kilo.db` and `kilo-<channel>.db`
(`$KILO_DB` names another one). Shape and traps: see `opencode`. Seen: 1.0 to 7.7.
"""

from __future__ import annotations

from sessionlog.sources.opencode import opencode_source

SOURCE = opencode_source("kilo", "Kilo", "kilo")
