"""Open a file in the user's browser, if this machine has a screen on which it can be seen."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_REMOTE = ("SSH_CONNECTION", "SSH_TTY")
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")


def has_screen(env: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Return whether a browser that is started here can be seen: not over ssh, and on Linux not without a display."""
    if any(env.get(name) for name in _REMOTE):
        return False
    return platform in ("darwin", "win32") or any(env.get(name) for name in _SCREENS)


def open_in_browser(path: str) -> bool:
    """Open a file in a browser window; return False if there is none. Browsers of the terminal are not started."""
    if not has_screen(os.environ):
        return False
    import webbrowser  # it looks for programs

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    if type(browser) is webbrowser.GenericBrowser:  # such as lynx, which would draw over the application
        return False
    return browser.open(Path(path).absolute().as_uri())
