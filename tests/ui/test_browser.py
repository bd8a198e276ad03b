"""A browser is started only where its window can be seen."""

import webbrowser

import pytest

pytest.importorskip("textual", reason="the terminal application needs sessionlog[tui]")

from sessionlog.ui.browser import has_screen, open_in_browser


@pytest.mark.parametrize(
    ("env", "platform", "seen"),
    [
        ({}, "linux", False), ({"DISPLAY": ":0"}, "linux", True), ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"WSL_DISTRO_NAME": "Ubuntu"}, "linux", True), ({}, "darwin", True), ({}, "win32", True),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}, "linux", False), ({"SSH_TTY": "/dev/pts/0"}, "darwin", False),
    ],
)  # fmt: skip
def test_a_screen_is_needed(env, platform, seen):
    """Over ssh a browser would open on the other machine's screen, or in the terminal."""
    assert has_screen(env, platform) is seen


class Recorded(webbrowser.BackgroundBrowser):
    """A browser that opens nothing."""

    opened = ()

    def open(self, url, new=0, autoraise=True):
        """Record the address."""
        Recorded.opened += (url,)
        return True


def test_the_file_is_opened_as_an_address(monkeypatch, tmp_path):
    """With its special characters quoted."""
    monkeypatch.setattr("sessionlog.ui.browser.has_screen", lambda _: True)
    monkeypatch.setattr(webbrowser, "get", lambda: Recorded("x"))
    assert open_in_browser(str(tmp_path / "a b#c.html"))
    assert Recorded.opened == (f"{tmp_path.as_uri()}/a%20b%23c.html",)


@pytest.mark.parametrize("kind", ["terminal", "none"])
def test_no_browser_of_the_terminal_is_started(monkeypatch, kind):
    """It would draw over the application."""

    def get():
        if kind == "none":
            raise webbrowser.Error("could not locate runnable browser")
        return webbrowser.GenericBrowser("lynx")

    monkeypatch.setattr("sessionlog.ui.browser.has_screen", lambda _: True)
    monkeypatch.setattr(webbrowser, "get", get)
    assert not open_in_browser("/page.html")
