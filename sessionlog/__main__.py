"""`python -m sessionlog`."""

from __future__ import annotations

import sys

from sessionlog.cli import main

sys.exit(main())
