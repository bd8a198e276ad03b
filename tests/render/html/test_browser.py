"""Pages in a real browser: hostile logs load and run nothing, and every page is accessible, on a phone and on a desk."""

import random
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sessionlog.analytics.overview import fold_overview, overview
from sessionlog.analytics.question import Question
from sessionlog.render.html.page import Html, render_page
from sessionlog.render.html.report import render_overview
from tests.analytics.week import DATA, NOW
from tests.ledger.entries import NOON, PRICES, book_of, record, session
from tests.render.html.hostile import VECTORS, log_of
from tests.render.html.test_report import VIEW
from tests.render.html.test_session import LOGS, page_of, page_of_text

_REASON = "needs an environment with playwright and axe-playwright-python: CONTRIBUTING.md"
playwright = pytest.importorskip("playwright.sync_api", reason=_REASON)
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=_REASON)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH"),
]

PAGES = 200
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
SCREENS = [(name, size, scheme) for name, size in (("phone", PHONE), ("desk", DESK)) for scheme in ("light", "dark")]
SERIOUS = {"serious", "critical"}

USE = """() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  document.querySelectorAll("*").forEach((one) => {
    for (const kind of ["mouseover", "focus", "animationstart", "toggle", "load", "error"]) {
      one.dispatchEvent(new Event(kind));
    }
  });
  document.querySelectorAll("button").forEach((one) => one.click());
  document.querySelectorAll("a[href^='#']").forEach((one) => one.click());
}"""
"""Whatever a reader may do in a page without leaving it."""


class Trap(BaseHTTPRequestHandler):
    """Answers for every host of the internet, and keeps the addresses that it was asked for."""

    seen: list = []  # noqa: RUF012 - of all tests, which compare its length

    def do_GET(self):
        """Keep the address, unless the browser itself looks for its updates."""
        if self.headers.get("Host") != "update.googleapis.com":
            self.seen.append(f"{self.headers.get('Host')}{self.path}")
        self.send_response(204)
        self.end_headers()

    do_POST = do_HEAD = do_GET  # noqa: N815 - the names of the library

    def log_message(self, *_):
        """Print nothing."""


class Watched:
    """A page of a browser: whatever it asked for, opened, ran or complained about."""

    def __init__(self, page):
        self.page, self.found = page, []
        page.on("request", self._request)
        page.on("dialog", self._dialog)
        page.on("popup", lambda _: self.found.append("a window"))
        page.on("pageerror", lambda error: self.found.append(f"error {error}"))
        page.on("console", lambda line: self.found.append(f"console {line.text}"))

    def _request(self, request):
        if not request.url.startswith(("file://", "data:image/")):
            self.found.append(f"request {request.url[:100]}")

    def _dialog(self, dialog):
        self.found.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def open(self, path):
        """Open a file."""
        self.page.goto(path.as_uri())

    def use(self):
        """Unfold, hover, focus, press and search; return how many scripts the page has."""
        self.page.evaluate(USE)
        search = self.page.locator("[data-search]")
        if search.count():
            search.fill("script")
            playwright.expect(self.page.locator("#found")).not_to_be_empty()
        return self.page.evaluate("document.scripts.length")


@pytest.fixture(scope="module")
def trap():
    """A server that stands for all others."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Trap)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser(trap):
    """Chromium, which finds every host at the trap."""
    arguments = ["--no-sandbox", f"--host-resolver-rules=MAP * 127.0.0.1:{trap}"]
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


@pytest.fixture
def watched(browser):
    """A page, and what happens in it."""
    context = browser.new_context()
    yield Watched(context.new_page())
    context.close()


def hostile_texts():
    """Each technique alone, then several of them in a row."""
    rng, vectors = random.Random(18), list(VECTORS.values())
    yield from vectors
    for _ in range(PAGES - len(vectors)):
        chosen = rng.sample(vectors, rng.randint(2, 6))
        yield "".join(rng.choice(["\n\n", " ", "", "\n"]) + text for text in chosen)


def written(folder, name, text):
    """A file with a page."""
    path = folder / f"{name}.html"
    path.write_text(text, "utf-8", errors="backslashreplace")
    return path


def report_of(text=None):
    """The page of a week, or of a session with one text for all its names."""
    if text is None:
        found = overview(DATA / "week", since="30d", now=NOW, prices=PRICES)
    else:
        evil = record(model=text, provider=text, project=f"/{text}", branch=text, cost_nano=10, time_ns=NOON)
        book = book_of(session(text or "s", evil, prompt=text, status=text, error=text))
        found = fold_overview(book, Question(now=NOW, window="7d"), most_sessions=5)
    return "".join(render_overview(found, VIEW, budgets=None, pages={}))


def test_the_watch_sees_what_it_is_meant_to_find(watched, tmp_path):
    """A page without a policy that does all of it: loads, runs, asks and fails."""
    text = "<img src=http://evil.example/beacon><script>alert(1); console.log('x'); nothing()</script>"
    before = len(Trap.seen)
    watched.open(written(tmp_path, "evil", text))
    watched.page.wait_for_load_state("networkidle")
    assert {one.split()[0] for one in watched.found} == {"request", "dialog", "console", "error"}
    assert Trap.seen[before:] == ["evil.example/beacon"]


def test_the_policy_stops_what_escaping_would_have_let_through(watched, tmp_path):
    """Markup in the body of a page of ours: nothing is loaded and nothing runs."""
    body = [Html(text) for text in VECTORS.values() if "</script" not in text and "<form" not in text]
    before = len(Trap.seen)
    watched.open(written(tmp_path, "markup", "".join(render_page("t", body, kind="session"))))
    watched.page.wait_for_timeout(500)
    assert Trap.seen[before:] == []
    assert not [one for one in watched.found if one.startswith(("dialog", "a window", "request http"))]


@pytest.mark.timeout(600)
def test_p20_hostile_logs_load_and_run_nothing(watched, tmp_path):
    """Two hundred of them: no request, no dialog, no window, no error, nothing for the policy to stop, one script."""
    before = len(Trap.seen)
    for number, text in enumerate(hostile_texts()):
        watched.open(written(tmp_path, number, page_of_text(log_of(text), tmp_path)))
        assert watched.use() == 1, text
        assert watched.found == [], text
    assert Trap.seen[before:] == []


@pytest.mark.timeout(600)
def test_p20_hostile_names_in_a_report_load_and_run_nothing(watched, tmp_path):
    """Each technique as the name of a model, a provider, a project, a branch, a session."""
    before = len(Trap.seen)
    for number, text in enumerate(VECTORS.values()):
        watched.open(written(tmp_path, number, report_of(text)))
        assert watched.use() == 1, text
        assert watched.found == [], text
    assert Trap.seen[before:] == []


@pytest.mark.parametrize(("name", "size", "scheme"), SCREENS)
@pytest.mark.parametrize("kind", ["session", "agents", "report"])
def test_pages_are_accessible_and_fit_the_screen(kind, name, size, scheme, browser, tmp_path):
    """Folded and unfolded: nothing that axe calls serious, nothing wider than the screen."""
    pages = {
        "session": lambda: page_of(LOGS / "story.jsonl"),
        "agents": lambda: page_of_text(log_of("# explorer\n\n[a](https://a.example/b)\n\n```py\nx = 1\n```"), tmp_path),
        "report": report_of,
    }
    context = browser.new_context(viewport=size, color_scheme=scheme)
    page = context.new_page()
    page.goto(written(tmp_path, kind, pages[kind]()).as_uri())
    for is_open in (False, True):
        page.evaluate("open => document.querySelectorAll('details').forEach((one) => { one.open = open; })", is_open)
        violations = axe.Axe().run(page).response["violations"]
        serious = [(one["id"], one["nodes"][0]["html"][:200]) for one in violations if one["impact"] in SERIOUS]
        assert serious == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    context.close()


def test_a_page_is_whole_without_its_script(browser, tmp_path):
    """Every text is there, folded ones open by themselves, and nothing is offered that needs the script."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(written(tmp_path, "story", page_of(LOGS / "story.jsonl")).as_uri())
    assert page.locator(".tools").is_hidden()
    folded = page.locator("details.tool").first
    folded.locator("summary").click()
    assert folded.locator("pre").first.is_visible()
    context.close()


def test_search_shows_what_holds_the_words_and_unfolds_it(watched, tmp_path):
    """Others are hidden until the field is empty again."""
    watched.open(written(tmp_path, "story", page_of(LOGS / "story.jsonl")))
    page = watched.page
    steps = page.locator(".step")
    whole = steps.count()
    page.fill("[data-search]", "load")
    playwright.expect(page.locator("#found")).not_to_be_empty()
    shown = page.locator(".step:visible")
    assert 0 < shown.count() < whole
    assert all("load" in text.lower() for text in shown.all_text_contents())
    page.fill("[data-search]", "")
    playwright.expect(page.locator("#found")).to_be_empty()
    assert page.locator(".step[hidden]").count() == 0
    assert watched.found == []


def test_a_table_is_sorted_by_its_exact_numbers(watched, tmp_path):
    """A second press turns the order around."""
    watched.open(written(tmp_path, "report", report_of()))
    page = watched.page
    heading = page.locator("#models th.number").first
    values = "() => [...document.querySelectorAll('#models tbody tr')].map((row) => Number(row.querySelector('td.number').dataset.value))"
    heading.get_by_role("button").click()
    down = page.evaluate(values)
    heading.get_by_role("button").click()
    up = page.evaluate(values)
    assert down == sorted(down, reverse=True)
    assert up == sorted(up)
    assert len(down) > 1
    assert heading.get_attribute("aria-sort") == "ascending"
