"""Names of a package that are loaded when they are first used (PEP 562): whoever uses none of them pays for none."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's `__getattr__` and `__dir__`, given its names and the modules in which they are."""

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 - it imports warnings, which the command line saves

        value = getattr(import_module(home, package), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: list(homes)
