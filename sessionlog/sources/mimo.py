"""mimo: MiMo Code, which is built on opencode and stores the same under its own name.

Where: `$MIMOCODE_HOME`, else `mimocode` in `$XDG_DATA_HOME`, `~/.local/share` and so on: `mimocode.db` (`$MIMOCODE_DB`
names another one). Shape and traps: see `opencode`. It can take over the sessions of other agents; those that its table
`external_import` names are in their own logs and are left out.
"""

from __future__ import annotations

from sessionlog.sources.opencode import opencode_source

SOURCE = opencode_source("mimo", "MiMo Code", "mimocode")
