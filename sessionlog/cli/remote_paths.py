"""Remote paths on a command line: opened while the command runs, and named without passwords from then on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sessionlog import files
from sessionlog.files.remote import opened


def with_places(command: Callable[..., None], names: Sequence[str]) -> Callable[..., None]:
    """Return a command that opens the URLs in its settings of these names, lists them once, and runs."""

    def run(*args: Any, **settings: Any) -> None:
        given = {name: value for name in names if (value := settings.get(name))}
        texts = [one for value in given.values() for one in ([value] if isinstance(value, str) else value)]
        urls = [one for one in texts if files.is_url(one)]
        with opened(urls) as shown:
            named = dict(zip(urls, shown, strict=True))
            for name, value in given.items():
                is_one = isinstance(value, str)
                settings[name] = named.get(value, value) if is_one else [named.get(one, one) for one in value]
            command(*args, **settings)

    return run
