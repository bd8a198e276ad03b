"""The page of a session: everything that a replay has, turn by turn; nothing of a log becomes markup or an address."""

import base64
import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sessionlog.analytics.session_totals import totals_alone
from sessionlog.reader.stream import read_events
from sessionlog.render.html import session
from sessionlog.render.html.code import highlight, language_of
from sessionlog.render.html.conversation import CUT, CUT_OUTLINE
from sessionlog.render.html.markdown import markdown
from sessionlog.render.html.page import tag
from sessionlog.render.html.session import SessionPage, render_session
from sessionlog.render.replay.blocks import Call, ResponseBlock, Served, ToolCallBlock
from sessionlog.render.replay.fold import fold_replay
from sessionlog.render.replay.lines import Limits, View
from sessionlog.sources.find import log_at
from tests.render.html.hostile import VECTORS, Page, findings, log_of

LOGS = Path(__file__).parents[3] / "testdata" / "replay"
VIEW = View(width=None, exact=False, limits=CUT, now=datetime(2026, 11, 22, tzinfo=UTC), home="/home/ada")
PNG = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (3).to_bytes(4, "big") + (2).to_bytes(4, "big") + b"\x08\x02\x00\x00\x00"
).decode()


def page_of(path, view=VIEW, **options):
    """The page of a log."""
    blocks = fold_replay(read_events(str(path)), session_id="s", **options)
    return "".join(render_session(blocks, view, SessionPage(session="s", agent="sessionlog")))


def page_of_text(text, folder, view=VIEW, **options):
    """The page of a log that is made."""
    path = Path(folder) / "s.jsonl"
    path.write_text(text, "utf-8", errors="surrogatepass")
    return page_of(path, view, **options)


def log_of_events(events):
    """The lines of (type, data), a second apart."""
    return "".join(
        json.dumps({"session_id": "s", "seq": seq, "type": kind, "ts": f"2026-11-20T10:00:{seq:02}Z", "data": data})
        + "\n"
        for seq, (kind, data) in enumerate(events)
    )


def test_the_page_of_a_story_is_what_it_was():
    """Its body, compared with a golden file: SESSIONLOG_UPDATE_GOLDEN=1 writes it anew."""
    log = log_at(str(LOGS / "story.jsonl"))
    page = page_of(log.path, totals=lambda: totals_alone(log))
    body = re.sub(r"<script>.*</script>", "", page[page.index("<body") :], flags=re.DOTALL)
    golden = LOGS / "story.body.html"
    if os.environ.get("SESSIONLOG_UPDATE_GOLDEN"):
        golden.write_text(body, "utf-8")
    assert body == golden.read_text("utf-8")
    assert findings(page) == []


@pytest.mark.parametrize("name", sorted(VECTORS))
def test_p20_nothing_of_a_log_becomes_markup(name, tmp_path):
    """In no place that a page shows, by no technique; and what was typed is still there to read."""
    page = page_of_text(log_of(VECTORS[name]), tmp_path)
    assert findings(page) == []
    if VECTORS[name].isascii() and VECTORS[name].isprintable():
        assert VECTORS[name] in Page(page).text


def test_p20_all_of_it_at_once(tmp_path):
    """Vectors that stand beside others, uncut and with the messages of every request."""
    text = log_of("\n\n".join(VECTORS.values()))
    assert findings(page_of_text(text, tmp_path, View(width=None, exact=False), all_messages=True)) == []


@pytest.mark.parametrize("name", sorted(path.stem for path in LOGS.glob("*.jsonl")))
def test_every_lesson_has_a_page(name):
    """Damaged, hostile, oldest; ids are unique, and every link within the page has its place."""
    page = page_of(LOGS / f"{name}.jsonl")
    elements = Page(page).elements
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert findings(page) == []
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for _, a in elements if a.get("href", "").startswith("#")} <= set(ids)
    assert "\x1b" not in page


@pytest.mark.parametrize(("text", "made"), [
    ("**a** and *b*\nc", "<p><strong>a</strong> and <em>b</em><br>c</p>"),
    ("# Title", '<p class="heading h1">Title</p>'),
    ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
    ("3. a", '<ol start="3"><li>a</li></ol>'),
    ("plain <b>", '<div class="typed">plain &lt;b&gt;</div>'),
    ("`<b>`", "<p><code>&lt;b&gt;</code></p>"),
    ("[a](https://b.example/c)", ('<p><a href="https://b.example/c" rel="noreferrer noopener">a</a>'
     '<span class="dim"> (b.example)</span></p>')),
    ("[a](mailto:x@y.example)", "<p>[a](mailto:x@y.example)</p>"),
    ("![a](https://b.example/c.png)", ('<p>!<a href="https://b.example/c.png" rel="noreferrer noopener">a</a>'
     '<span class="dim"> (b.example)</span></p>')),
    ("", ""),
])  # fmt: skip
def test_markdown(text, made):
    """Elements of our list; a link shows its host unless its words are its address."""
    assert markdown(text) == made


def test_code_is_highlighted_by_its_name():
    """By a fence's name or a file's ending; unknown names, long texts and long lines stay as they are."""
    assert language_of("/src/a.py") == language_of("Python") == "python"
    assert language_of("evil") == ""
    assert highlight("def f(): pass", "python").startswith('<span class="hk">def</span>')
    assert highlight("<b>", "") == "&lt;b&gt;"
    assert "<span" not in highlight("x = 1\n" * 10_000, "python")
    assert "<span" not in highlight("x = 1 + " * 1_000, "python")


def _with_picture(address):
    text = log_of("")
    return text.replace('"url": ""', f'"url": "{address}"')


@pytest.mark.parametrize(("address", "shown"), [
    (f"data:image/png;base64,{PNG}", f"data:image/png;base64,{PNG}"),
    (f"data:text/html;base64,{PNG}", f"data:image/png;base64,{PNG}"),
    ("data:image/svg+xml;base64,PHN2Zy8+", None),
    ("data:image/png;base64,PHN2Zy8+", None),
    ("https://evil.example/a.png", None),
])  # fmt: skip
def test_pictures_are_shown_from_the_log_alone(address, shown, tmp_path):
    """By their own bytes, whatever the log calls them; no address is followed."""
    elements = Page(page_of_text(_with_picture(address), tmp_path)).elements
    assert {a["src"] for name, a in elements if name == "img"} == ({shown} if shown else set())


def test_long_texts_are_cut_with_their_size(tmp_path):
    """Unless everything is wanted."""
    log = (LOGS / "story.jsonl").read_text("utf-8").replace("12 passed", "x").replace("def load", "y" * 50_000)
    assert "characters (--full)" in page_of_text(log, tmp_path)
    assert "(--full)" not in page_of_text(log, tmp_path, View(width=None, exact=False, limits=Limits()))


def test_a_long_page_cuts_texts_shorter(tmp_path, monkeypatch):
    """Only what folds, and only after the page has become long; unless everything is wanted."""
    log = (LOGS / "story.jsonl").read_text("utf-8").replace("def load", "y" * 5_000)
    assert "characters (--full)" not in page_of_text(log, tmp_path)
    monkeypatch.setattr(session, "_LONG", 0)
    page = page_of_text(log, tmp_path)
    assert "characters (--full)" in page
    assert "I'll look at how the importer stores its position first." in page
    assert "(--full)" not in page_of_text(log, tmp_path, View(width=None, exact=False, limits=Limits()))


def test_a_very_long_page_ends_in_an_outline(tmp_path, monkeypatch):
    """Prompts and last answers, the number of what is left out, and a sentence above; unless everything is wanted."""
    monkeypatch.setattr(session, "_LONG", 0)
    monkeypatch.setattr(session, "_TOO_LONG", 0)
    page = page_of(LOGS / "story.jsonl")
    first = re.search(r'from <a href="#turn-(\d)">turn \1</a> on, only prompts and last answers', page)
    assert first
    assert re.findall(r"… (.*?) \(--full\)", page[page.index(f'id="turn-{first[1]}"') :])
    assert page.count('class="step prompt"') == 3
    everything = View(width=None, exact=False, limits=Limits())
    assert "(--full)" not in page_of_text((LOGS / "story.jsonl").read_text("utf-8"), tmp_path, everything)


def test_an_outline_counts_every_answer_and_call(monkeypatch):
    """What is shown and what is counted are all of them, also of a turn without an end."""
    monkeypatch.setattr(session, "_OUTLINED", 3)
    view = View(width=None, exact=False, limits=CUT_OUTLINE)
    outline = session._Outline(session._Elements(view))
    made = []
    for number in range(8):
        call = ToolCallBlock(call=Call(name="bash"))
        answer = ResponseBlock(text=f"answer {number}", served=Served(), thought="secret")
        made += [*outline.add(answer), *outline.add(call)]
    made += outline.end()
    page = "".join(made)
    assert re.findall(r"answer \d", page) == ["answer 2", "answer 5", "answer 7"]
    assert re.findall(r"… (.*?) \(", page) == [
        "2 answers and 2 tool calls", "2 answers and 3 tool calls", "1 answer and 3 tool calls",
    ]  # fmt: skip
    assert "secret" not in page


def test_an_outline_begins_within_the_work_of_a_sub_agent(tmp_path, monkeypatch):
    """One alone can be very long: what follows of it is counted."""
    monkeypatch.setattr(session, "_LONG", 0)
    monkeypatch.setattr(session, "_TOO_LONG", 5_000)
    calls = [("tool.call", {"agent": "a1", "tool": "bash", "output": f"{number} {'x' * 900}"}) for number in range(20)]
    events = [("session.start", {"v": 1}), ("llm.request", {"messages": [{"role": "user", "content": "go"}]}), *calls]
    page = page_of_text(log_of_events(events), tmp_path)
    shown = len(re.findall(r"\d+ x{900}", page))
    assert 0 < shown < 10
    assert f"… {20 - shown} tool calls (--full)" in page
    assert "20 tools" in page


def test_an_outline_has_answers_before_the_compaction_that_followed_them(tmp_path, monkeypatch):
    """What was left out, the last answer, then the compaction."""
    monkeypatch.setattr(session, "_LONG", 0)
    monkeypatch.setattr(session, "_TOO_LONG", 0)
    request = ("llm.request", {"messages": [{"role": "user", "content": "go on"}]})
    answers = [("llm.response", {"content": text}) for text in ("first", "second")]
    compaction = ("compaction.end", {"success": True, "tokens_before": 100, "tokens_after": 5})
    events = [("session.start", {"v": 1}), request, *answers, compaction, ("llm.response", {"content": "third"})]
    page = page_of_text(log_of_events(events), tmp_path)
    conversation = page[page.index("<main") :]
    assert re.findall("1 answer|second|compacted|third", conversation) == ["1 answer", "second", "compacted", "third"]


def test_quotation_marks_of_a_text_stay_and_those_of_an_attribute_do_not():
    """An escaped mark takes five or six bytes, and a text cannot be ended by one."""
    assert tag("p", 'it\'s "<b>"', title='it\'s "<b>"') == (
        '<p title="it&#x27;s &quot;&lt;b&gt;&quot;">it\'s "&lt;b&gt;"</p>'
    )


def test_turns_have_their_sums():
    """Each prompt is a row of the navigation, and begins a section that it links to."""
    page = page_of(LOGS / "story.jsonl")
    assert [row.count("<a ") for row in re.findall(r"<li .*?</li>", page)] == [1, 1, 1]
    assert "33.7k tokens" in page
    assert re.findall(r'<section class="turn" id="(turn-\d)"', page) == ["turn-0", "turn-1", "turn-2", "turn-3"]


def test_a_long_list_of_prompts_is_folded(monkeypatch):
    """Above the conversation, which would begin many screens below it on a phone."""
    assert '<details class="started"><summary><h2 id="prompts">' not in page_of(LOGS / "story.jsonl")
    monkeypatch.setattr(session, "_PROMPTS", 2)
    assert '<details class="started"><summary><h2 id="prompts">Prompts <small>3<' in page_of(LOGS / "story.jsonl")


def test_the_model_is_that_of_the_first_answer_where_the_start_names_none(tmp_path):
    """Most agents name it with each answer only."""
    log = re.sub(r'"model":"[^"]*",', "", (LOGS / "story.jsonl").read_text("utf-8").split("\n", 1)[0])
    rest = (LOGS / "story.jsonl").read_text("utf-8").split("\n", 1)[1]
    page = page_of_text(f"{log}\n{rest}", tmp_path)
    assert "<dt>model</dt><dd><bdi>anthropic / claude-opus-4-5</bdi></dd>" in page


def test_the_work_of_a_sub_agent_is_nested(tmp_path):
    """In one element that folds, named, with its own sums."""
    page = page_of_text(log_of("explorer"), tmp_path)
    assert '<details class="agent"><summary><b>sub-agent</b> <bdi>explorer</bdi>' in page


def test_a_folded_element_names_itself():
    """Every details begins with its summary: it can be reached and read by its name."""
    page = page_of(LOGS / "story.jsonl")
    assert page.count("<details") == len(re.findall(r"<details[^>]*><summary>", page))
    assert tag("details", open=False) == "<details></details>"
