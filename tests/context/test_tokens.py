"""A count of tokens says whether it is exact, is never refused, and never asks the network."""

import copy
import hashlib
import json
import pickle
import socket
import sys
from time import process_time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.context import tokenizers, tokens
from sessionlog.context.tokens import TokenCount, count_tokens, count_tokens_json
from tests.profiles import examples

ENGLISH = (
    "The session is the log: every request, every answer and every tool call is one line of a file, and whatever "
    "else a person or an agent may want to know is computed from those lines. "
)
CODE = """\
def read_small(path: str, limit: int = 1 << 20) -> bytes | None:
    if stat_path(path) is None:
        return None
    with open_log(path) as file:
        return file.read(limit)
"""
DIFF = """\
@@ -12,7 +12,7 @@ class TokenCount(int):
-    exact: bool = False
+    exact: bool

     def __repr__(self) -> str:
"""
DATA = json.dumps([{"model": "gpt-4o", "input_tokens": 1200 + n, "cost_usd": 0.0125, "ok": True} for n in range(20)])
CHINESE = "随着人工智能技术的快速发展，大型语言模型已经成为软件工程师日常工作中不可或缺的工具。我们需要读取日志文件，然后进行汇总。"
JAPANESE = "ログファイルを読み込み、セッションとモデルごとに集計します。昨日、私は図書館に行って、本を三冊借りました。"
LISTING = "".join(f"-rw-r--r-- 1 root root {n * 37:6} Nov 21 22:{n % 60:02} file_{n}.py\n" for n in range(30))


@pytest.fixture
def fresh(monkeypatch):
    """Nothing remembered of texts, models or packages."""
    monkeypatch.setattr(tokens, "_counted", {})
    tokenizers._load.cache_clear()
    yield
    tokenizers._load.cache_clear()


@pytest.fixture
def nothing_installed(fresh, monkeypatch):
    """No tokenizer package is there."""
    monkeypatch.setitem(sys.modules, "splintr", None)
    monkeypatch.setitem(sys.modules, "tiktoken", None)


@pytest.fixture
def no_network(monkeypatch):
    """Opening a socket fails the test."""

    def refuse(*_, **__):
        pytest.fail("the network was asked")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_a_count_is_a_number_that_says_how_it_was_found():
    """It compares, adds and prints as an int; only its repr marks an estimate."""
    count = TokenCount(12)
    assert (count, count + 1, f"{count}", str(count), json.dumps(count)) == (12, 13, "12", "12", "12")
    assert repr(count) == "~12"
    assert repr(TokenCount(12, exact=True)) == "12"
    assert [pickle.loads(pickle.dumps(c)).exact for c in (count, TokenCount(1, exact=True))] == [False, True]
    assert copy.deepcopy(TokenCount(1, exact=True)).exact


def test_an_empty_text_has_no_tokens():
    """Nothing is exactly 0, for any model."""
    assert count_tokens("") == count_tokens("", "gpt-4o") == 0
    assert count_tokens("").exact


@given(st.text(alphabet=st.characters(), min_size=1, max_size=300))
@examples(200)
def test_any_text_has_tokens(text):
    """One character is at least one token, of whatever kind, surrogates included; no more tokens than characters."""
    assert 1 <= count_tokens(text) <= len(text)


@pytest.mark.parametrize(
    ("text", "most"),
    [(ENGLISH, 10), (CODE, 10), (DIFF, 15), (DATA, 20), (CHINESE, 15), (JAPANESE, 15), (LISTING, 20)],
    ids=["english", "code", "diff", "json", "chinese", "japanese", "ls"],
)
def test_the_estimate_is_near(text, most):
    """Within so many per cent of what the tokenizer of OpenAI's models says."""
    pytest.importorskip("splintr")
    exact = count_tokens(text, "gpt-4o")
    assert exact.exact
    assert abs(count_tokens(text) / exact - 1) * 100 <= most


def test_a_model_with_a_public_tokenizer_is_counted_exactly():
    """In any spelling of its name; words that spell special tokens are words."""
    pytest.importorskip("splintr")
    for model in ("gpt-4o", "openai:gpt-4o-2024-08-06", "GPT-4.1-mini", "gpt-4", "gpt-oss:20b", "qwen/qwen3-8b"):
        count = count_tokens("hello world", model)
        assert (count, count.exact) == (2, True), model
    assert count_tokens("<|endoftext|>", "gpt-4o") > 1


@pytest.mark.parametrize(
    "model", [None, "", "unknown", "gemini-2.5-pro", "gpt-6-sol", "qwen3.6-27b", "deepseek-r1-distill-llama-70b"]
)  # fmt: skip
def test_other_models_are_estimated(model):
    """The tokenizers of many models are not public; what is installed does not change that."""
    count = count_tokens("hello world", model)
    assert (count, count.exact) == (2, False)


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"])
def test_claude_counts_a_quarter_more(model):
    """Its tokenizer is not public, and cuts finer than others: always an estimate, and a higher one."""
    count = count_tokens(ENGLISH, model)
    assert not count.exact
    assert count == pytest.approx(1.25 * count_tokens(ENGLISH), abs=1)
    assert count_tokens("", model) == 0
    assert count_tokens("a", model) == 1


@pytest.mark.parametrize(
    ("model", "vocabulary"),
    [
        ("gpt-4", "cl100k_base"),
        ("gpt-4-0613", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("gpt-4.1", "o200k_base"),
        ("gpt-4o-mini-2024-07-18", "o200k_base"),
        ("gpt-5.3-codex", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("us.meta.llama3-1-70b-instruct-v1:0", "llama3"),
        ("zai/glm-4.5-air", "glm4"),
        ("github-copilot/gpt-4-o-preview", "o200k_base"),
        ("phi-4", "phi4"),
        ("microsoft/phi-4-reasoning-plus", "phi4"),
        ("phi-4-mini-instruct", ""),
        ("phi-4-multimodal-instruct", ""),
        ("deepseek/deepseek-r1-0528:free", "deepseek_v3"),
        ("deepseek-r1-0528-qwen3-8b", ""),
        ("thudm/glm-4-32b-0414", "glm4"),
        ("glm-4.5v", "glm4"),
        ("glm-4.6", ""),
        ("glm-4.6v-flash", ""),
        ("glm-4-plus", ""),
        ("kimi-k2.7-code", "kimi_k2"),
        ("kimi-k3", "kimi_k3"),
        ("kimi-k3.1-pro", ""),
        ("gpt-40", ""),
        ("my-gpt-4o", ""),
    ],
)
def test_the_longest_family_decides(model, vocabulary):
    """gpt-4.1 is not gpt-4, and a name that only looks alike is neither."""
    assert tokenizers.vocabulary_of(model) == vocabulary


def test_without_a_tokenizer_everything_is_an_estimate(nothing_installed, no_network):
    """Nothing is raised and nothing fetched."""
    assert [repr(count_tokens("hello world", "gpt-4o")) for _ in range(2)] == ["~2", "~2"]


def test_a_vocabulary_that_the_package_lacks_is_an_estimate(fresh, monkeypatch):
    """An older version of it may know fewer."""

    def refuse(name):
        raise ValueError(name)

    monkeypatch.setitem(sys.modules, "splintr", SimpleNamespace(Tokenizer=SimpleNamespace(from_pretrained=refuse)))
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert not count_tokens("hello world", "gpt-4o").exact


def test_a_lone_surrogate_is_estimated():
    """A tokenizer of bytes refuses it; the count does not."""
    count = count_tokens("a\ud800b" * 200, "gpt-4o")
    assert count > 0
    assert not count.exact


class Cached:
    """A folder with the file that tiktoken wants, and a tiktoken that counts letters."""

    def __init__(self, monkeypatch, folder):
        self.asked = []
        url = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
        self.file = folder / hashlib.sha1(url.encode()).hexdigest()
        monkeypatch.setitem(sys.modules, "splintr", None)
        monkeypatch.setitem(sys.modules, "tiktoken", SimpleNamespace(get_encoding=self.get_encoding))
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        monkeypatch.setitem(tokenizers._TIKTOKEN, "o200k_base", hashlib.sha256(b"whole").hexdigest())

    def get_encoding(self, name):
        self.asked.append(name)
        return SimpleNamespace(encode_ordinary=list)


def test_tiktoken_counts_when_its_file_is_there(fresh, monkeypatch, tmp_path):
    """With its own cache filled it needs no network."""
    cached = Cached(monkeypatch, tmp_path)
    cached.file.write_bytes(b"whole")
    assert repr(count_tokens("hello", "gpt-4o")) == "5"
    assert cached.asked == ["o200k_base"]


@pytest.mark.parametrize("content", [None, b"", b"damaged"])
def test_tiktoken_is_not_asked_without_its_file(fresh, monkeypatch, tmp_path, no_network, content):
    """It would fetch a file that is missing, and fetch again one that is damaged."""
    cached = Cached(monkeypatch, tmp_path)
    if content is not None:
        cached.file.write_bytes(content)
    assert not count_tokens("hello", "gpt-4o").exact
    assert cached.asked == []


def test_tiktoken_is_not_asked_without_a_cache(fresh, monkeypatch, tmp_path):
    """A folder of its own choice is nobody's promise."""
    cached = Cached(monkeypatch, tmp_path)
    cached.file.write_bytes(b"whole")
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    assert not count_tokens("hello", "gpt-4o").exact
    assert cached.asked == []


def test_long_texts_are_counted_once(fresh, monkeypatch):
    """A history is sent again with every request: its texts are remembered, by model, and not for ever."""
    monkeypatch.setattr(tokens, "_MAX_COUNTED", 2)
    text = ENGLISH * 3
    first = count_tokens(text)
    monkeypatch.setattr(tokens, "_count", lambda text, model: TokenCount(7))
    assert count_tokens("".join(list(text))) == first
    assert count_tokens(text, "gpt-4o") == 7
    assert count_tokens(text + "!") == 7
    assert count_tokens(text) == 7


_UNITS = ("a", "A", " ", "\n", " \n", "\r\n", "-", "_", "中", "😀", "\ud800", "\0", "aB1", "é ", ' "')
_SPACES = ("\x1e", "\x85", "\u2028", "\x1e ", "\x85\n", "\x1c\u3000")


@pytest.mark.parametrize("unit", [*_UNITS, *_SPACES])
def test_the_estimate_is_linear(unit):
    """Thirty-two times as much of anything takes about thirty-two times as long, not a thousand."""
    base = unit * (1_500 // len(unit))  # 32 times as much is still cut at once

    def seconds(text):
        best = 1.0
        for _ in range(3):
            start = process_time()
            tokens._count(text, None)
            best = min(best, process_time() - start)
        return best

    assert seconds(base * 32) < 300 * seconds(base) + 0.01


def test_a_vocabulary_may_be_named():
    """`cl100k_base` for any model, as other tools count; without it the estimate is nearer to the models of today."""
    assert tokenizers.vocabulary_of("cl100k_base") == tokenizers.vocabulary_of("gpt-4") == "cl100k_base"
    assert tokenizers.vocabulary_of("o200k_base") == tokenizers.vocabulary_of("gpt-4o") == "o200k_base"


def test_no_run_is_searched_again_and_again():
    """A run of any white space is one piece and its last character: what would cut it up would search it each time."""
    spaces = [chr(code) for code in range(0x3001) if chr(code).isspace() and chr(code) != "\n"]
    assert len(spaces) > 25
    assert {space: count_tokens(space * 200) for space in spaces} == dict.fromkeys(spaces, 2)
    assert {space: count_tokens(f"{space} " * 100) for space in spaces} == dict.fromkeys(spaces, 2)
    assert {space: count_tokens(f"{space}\n" * 100) for space in spaces} == dict.fromkeys(spaces, 100)


def test_no_other_run_is_one_piece():
    """Of anything but white space a piece has at most 64 characters, alone and between spaces and lines (of each third)."""
    others = [chr(code) for code in range(0, 0x3000, 3) if not chr(code).isspace()]
    assert min(count_tokens(char * 200) for char in others) > 3
    assert min(count_tokens(f"{char} " * 40) for char in others) >= 40
    assert min(count_tokens(f"{char}\n" * 40) for char in others) >= 40


def test_json_is_counted_compact():
    """As providers are sent it: no spaces, no escapes."""
    assert count_tokens_json({"a": [1, 2]}) == count_tokens('{"a":[1,2]}')
    assert count_tokens_json({"é": "ü"}) == count_tokens('{"é":"ü"}')
    assert count_tokens_json("") == count_tokens('""') == 1


class Mute:
    """Neither JSON nor a text."""

    def __str__(self):
        raise RuntimeError("no words")


def circle():
    value = []
    value.append(value)
    return value


def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [{1, 2}, b"\xff", {(1, 2): 3}, {"a": object()}, Mute(), [Mute()], circle(), deep(), float("nan"), "\ud800", 10**5000, 1j],
    ids=["set", "bytes", "tuple key", "object", "mute", "mute inside", "circle", "deep", "nan", "surrogate", "huge", "complex"],
)  # fmt: skip
def test_what_json_lacks_is_counted_too(value):
    """Anything has a count."""
    assert count_tokens_json(value) >= 1


def test_json_of_a_model_is_counted_with_its_tokenizer():
    """As a text is."""
    pytest.importorskip("splintr")
    assert count_tokens_json({"a": 1}, "gpt-4o").exact


@pytest.mark.parametrize("text", ["some words " * 300_000, "x" * (3 << 20)])
def test_a_long_text_is_given_to_the_tokenizer_in_slices(monkeypatch, text):
    """Its tokens would take many times its memory; a slice ends before a space, if it has one."""
    slices = []
    monkeypatch.setattr(tokens, "find_tokenizer", lambda _: lambda one: slices.append(one) or one.count("o"))
    assert count_tokens(text, "a-model") == text.count("o")
    assert "".join(slices) == text
    assert max(map(len, slices)) <= 1 << 20
    assert all(one[0] in " sx" for one in slices)
