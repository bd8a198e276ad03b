"""Texts that try to become markup, by technique, and logs that hold them in every place that a page shows."""

import json
from html.parser import HTMLParser

JS = "alert(document.domain)"
VECTORS = {
    "tag": f"<script>{JS}</script>",
    "tag in capitals": f"<ScRiPt >{JS}</sCrIpT >",
    "tag split by a tag": f"<scr<script>ipt>{JS}</scr</script>ipt>",
    "tag without an end": f"<script src=//evil.example/x.js {JS}",
    "tag behind a null": f"<\x00script>{JS}</script>",
    "tag with slashes": f"<svg/onload={JS}>",
    "event handler": f"<img src=x onerror={JS}>",
    "event handler, quoted": f'" onmouseover="{JS}" x="',
    "event handler, single quotes": f"' autofocus onfocus='{JS}' x='",
    "event handler, backticks": f"` onclick=`{JS}`",
    "event handler of details": f"<details open ontoggle={JS}>",
    "end of our element": f"</code></pre></details></main><script>{JS}</script>",
    "end of the title": f"</title><script>{JS}</script>",
    "end of the style": f"</style><script>{JS}</script>",
    "end of our script": f"</script><script>{JS}</script>",
    "SVG": f"<svg><script>{JS}</script></svg>",
    "SVG animation": f"<svg><animate onbegin={JS} attributeName=x dur=1s></svg>",
    "SVG use": "<svg><use href='data:image/svg+xml;base64,PHN2ZyBpZD0neCc+PC9zdmc+#x'></svg>",
    "MathML": f"<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror={JS}&gt;'>",
    "mutation": f"<noscript><p title='</noscript><img src=x onerror={JS}>'>",
    "mutation in a comment": f"<!--><img src=x onerror={JS}>-->",
    "mutation in CDATA": f"<![CDATA[><script>{JS}</script>]]>",
    "mutation in a form": f"<form><math><mtext></form><form><mglyph><style></math><img src onerror={JS}>",
    "javascript link": f"[click](javascript:{JS})",
    "javascript link with a tab": f"[click](java\tscript:{JS})",
    "javascript link in entities": f"[click](&#106;avascript&colon;{JS})",
    "javascript link in percents": f"[click](javascript%3A{JS})",
    "javascript link behind a control": f"[click](\x01javascript:{JS})",
    "javascript autolink": f"<javascript:{JS}>",
    "javascript reference": f"[click]\n\n[click]: javascript:{JS}",
    "data link": "[click](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "vbscript link": "[click](vbscript:msgbox(1))",
    "file link": "[click](file:///etc/passwd)",
    "link without a scheme": "[click](//evil.example/x)",
    "link with a quote": f'[click](https://evil.example/"onmouseover="{JS})',
    "link with a title": f"[click](https://evil.example/ '\" onmouseover=\"{JS}')",
    "link that misleads": "[https://bank.example](https://bank.example@evil.example/)",
    "picture": "![x](https://evil.example/beacon.png)",
    "picture with a handler": f'![x" onerror="{JS}](x)',
    "picture in a link": "[![x](https://evil.example/a.png)](javascript:alert(1))",
    "picture by reference": "![x]\n\n[x]: https://evil.example/beacon.png",
    "picture, svg": "![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+)",
    "CSS": "<style>@import 'https://evil.example/x.css'; body{background:url(https://evil.example/b)}</style>",
    "CSS in an attribute": "<p style=\"background:url('https://evil.example/b')\">x</p>",
    "CSS link": "<link rel=stylesheet href=https://evil.example/x.css>",
    "meta refresh": "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "meta policy": '<meta http-equiv=Content-Security-Policy content="script-src *">',
    "base": "<base href=https://evil.example/>",
    "form": f"<form action=https://evil.example/><button formaction=javascript:{JS}>x</button></form>",
    "iframe": f"<iframe src=javascript:{JS}></iframe><iframe srcdoc='<script>{JS}</script>'></iframe>",
    "object": "<object data=https://evil.example/x></object><embed src=https://evil.example/x>",
    "media": "<video src=https://evil.example/v poster=https://evil.example/p autoplay><audio src=x onerror=alert(1)>",
    "template": f"<template><script>{JS}</script></template>",
    "shadow": f"<div><template shadowrootmode=open><img src=x onerror={JS}></template></div>",
    "entities": f"&lt;script&gt;{JS}&lt;/script&gt; &#60;script&#62; &#x3c;img src=x onerror={JS}&#x3e;",
    "entities without an end": f"&#0000060script&#0000062{JS}",
    "entities of bidi": "&#x202e;txt.exe",
    "broken UTF-8": f"\udce2\udc80<script>{JS}</script>\ud800",
    "overlong": f"\udcc0\udcbcscript\udcc0\udcbe{JS}",
    "UTF-7": "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "nulls": f"\x00<\x00s\x00c\x00r\x00i\x00p\x00t\x00>{JS}",
    "terminal": "\x1b]8;;https://evil.example/\x1b\\x\x1b]8;;\x1b\\ \x9b31m",
    "bidi": "\u202e<\u2066script\u2069>\u200b",
    "HTML block": f"<div>\n\n*a* <img src=x onerror={JS}>\n\n</div>",
    "HTML block of a type": "<?php x ?>\n<!DOCTYPE html>\n<!ENTITY x>",
    "fence's info": f'```"><img/src=x/onerror={JS}>\ncode\n```',
    "fence's language": f"```html onload={JS}\n<script>{JS}</script>\n```",
    "fence without an end": f"````\n```\n<script>{JS}</script>",
    "code": f"`<script>{JS}</script>` ``<img src=x onerror={JS}>``",
    "table": f"| a | <script>{JS}</script> |\n|---|---|\n| [x](javascript:{JS}) | ![y](https://evil.example/p) |",
    "heading": f"# <img src=x onerror={JS}>\n<svg onload={JS}>\n===",
    "list": f"1. <script>{JS}</script>\n99999999999. x\n- [ ] <input autofocus onfocus={JS}>",
    "nesting": ">" * 300 + " <b>x</b>",
    "nested emphasis": "*" * 500 + "x" + "_" * 500,
    "isindex and others": "<isindex prompt=x><marquee onstart=alert(1)><keygen autofocus onfocus=alert(1)>",
    "custom element": f"<x-y onclick={JS} is=script contenteditable autofocus onfocus={JS}>",
    "attributes of ours": "<p data-fold=open data-copy=x data-search='*' id=conversation class=scripted>",
    "prototype": "__proto__ constructor data-fold",
    "policy": "'unsafe-inline' https://evil.example *",
    "gzip of a header": "\r\nContent-Type: text/html\r\n\r\n<script>alert(1)</script>",
}  # fmt: skip
"""Our own list, a name for each technique."""

ELEMENTS = frozenset({
    "a", "b", "bdi", "blockquote", "body", "br", "button", "code", "dd", "details", "div", "dl", "dt", "em", "footer",
    "h1", "h2", "head", "header", "hr", "html", "img", "input", "label", "li", "main", "meta", "nav", "ol", "p", "pre",
    "s", "script", "section", "small", "span", "strong", "style", "summary", "table", "tbody", "td", "th", "thead",
    "time", "title", "tr", "ul",
})  # fmt: skip
ATTRIBUTES = frozenset({
    "alt", "aria-describedby", "aria-labelledby", "charset", "class", "content", "data-fold", "data-search", "dir",
    "height", "href", "http-equiv", "id", "lang", "loading", "name", "open", "rel", "role", "src", "start", "tabindex",
    "type", "value", "width",
})  # fmt: skip


class Page(HTMLParser):
    """What a browser would find in a page: elements, attributes, addresses, scripts and texts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        """Keep an element."""
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        """Leave it."""
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        """Keep a text of the body."""
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    @property
    def text(self):
        """All texts."""
        return "".join(self.texts)


def findings(page):
    """What a page has that no page of ours may have."""
    found = []
    for tag, attributes in Page(page).elements:
        if tag not in ELEMENTS:
            found.append(f"<{tag}>")
        found += [f"<{tag} {name}>" for name in attributes if name not in ATTRIBUTES]
        if "href" in attributes and not attributes["href"].startswith(("#", "https://", "http://")):
            found.append(f"href {attributes['href']}")
        if tag == "a" and attributes["href"][0] != "#" and attributes.get("rel") != "noreferrer noopener":
            found.append("a link that names where it stands")
        if "src" in attributes and not attributes["src"].startswith(
            ("data:image/png;", "data:image/jpeg;", "data:image/gif;", "data:image/webp;")
        ):
            found.append(f"src {attributes['src']}")
    scripts = sum(tag == "script" for tag, _ in Page(page).elements)
    return found + ([f"{scripts} scripts"] if scripts != 1 else [])


def log_of(text, name="s"):
    """A log that holds a text wherever a page shows one."""

    def event(seq, kind, data):
        return {"session_id": text or name, "seq": seq, "type": kind, "ts": "2026-11-21T09:58:00Z", "data": data}

    call = {"id": "c1", "name": text, "arguments": {text: text, "command": text, "lines": f"{text}\n{text}"}}
    edit = {"file_path": text, "old_string": f"a\n{text}", "new_string": f"{text}\nb"}
    picture = {"type": "image_url", "image_url": {"url": text}}
    source = {"type": "base64", "media_type": text, "data": "PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+"}
    content = [{"type": "text", "text": text}, picture, {"type": "image", "source": source}]
    events = [
        event(0, "session.start", {
            "v": 1, "provider": text, "model": text, "work_dir": text, "prompt": text, "system_prompt": text,
            "metadata": {text: text}, "resolved_harness": text,
        }),
        event(1, "llm.request", {"model": text, "messages": [{"role": text, "content": text}, {"role": "user", "content": content}]}),
        event(2, "llm.response", {
            "content": text, "reasoning": text, "model": text, "finish_reason": text, "tool_calls": [call],
            "usage": {"input": 1, "output": 2}, "attempt": {"provider_name": text},
        }),
        event(3, "tool.call", {"id": "c1", "tool": text, "input": call["arguments"], "output": text, "error": text}),
        event(4, "tool.call", {"tool": text, "input": edit, "output": content, "agent": text}),
        event(5, "llm.response", {"content": text, "error": text, "agent": text}),
        event(6, "compaction.end", {"success": True, "summary": text}),
        event(7, text or "odd", {"message": text}),
        event(8, "routing_decision", {"reason": text, "provider": text, "model": text, "candidates": [{"model": text}]}),
        event(9, "session.end", {"status": text, "error": text, "output": f"{text}!", "model": text}),
    ]  # fmt: skip
    return "".join(f"{json.dumps(item)}\n" for item in events) + f"{text}\n"
