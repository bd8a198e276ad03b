"""Page: its policy allows exactly its own style and script, and everything else in it is escaped."""

import base64
import hashlib
import re
from html.parser import HTMLParser

from sessionlog.render.html.page import Html, join, render_page, tag

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202e&amp;"


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its texts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Keep an element."""
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        """Keep a text."""
        self.texts.append(data)


def test_p20_the_policy_allows_our_style_and_script_alone():
    """By the hashes of what is in the page; pictures only inside it; nothing else."""
    page = "".join(render_page("t", [], kind="session"))
    [policy] = [a["content"] for name, a in Elements(page).elements if a.get("http-equiv") == "Content-Security-Policy"]
    for name, directive in (("style", "style-src"), ("script", "script-src")):
        [content] = re.findall(f"<{name}>(.*?)</{name}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "img-src data:" in policy
    assert "unsafe" not in policy
    assert page.index("Content-Security-Policy") < page.index("<title>")


def test_texts_and_attributes_are_escaped():
    """Whatever they are, also in the title; only markup of ours is written as it is."""
    body = tag("p", EVIL, tag("b", EVIL), title=EVIL, hidden=True, class_="a", data_x=1, id=None)
    found = Elements("".join(render_page(EVIL, [body], kind=EVIL))).elements
    assert [name for name, _ in found] == [
        "html", "head", *["meta"] * 6, "title", "style", "body", "p", "b", "script",
    ]  # fmt: skip
    assert body.startswith("<p title=")
    assert set(dict(found)["p"]) == {"title", "hidden", "class", "data-x"}
    assert "\x1b" not in body
    assert "\u202e" not in body


def test_elements_are_joined():
    """None is left out; void elements have no end."""
    assert tag("br") == "<br>"
    assert tag("p", None, "<", Html("<b>x</b>")) == "<p>&lt;<b>x</b></p>"
    assert join("a", None, tag("i", "b")) == "a<i>b</i>"
