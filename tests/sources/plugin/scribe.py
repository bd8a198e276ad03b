"""scribe: the source of docs/add-an-agent.md, as its page has it."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "add-an-agent.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)

exec(compile(BLOCKS[0], str(PAGE), "exec"))
