"""Twenty queries, words and phrases, of the logs of three agents: every line that a plain scan finds is found."""

import os
import random
import re

import pytest

from benchmarks.agent_homes import Truth
from benchmarks.bench_find import Slices
from benchmarks.claude_home import ClaudeHome
from benchmarks.codex_home import CodexHome
from benchmarks.corpus import generate
from sessionlog.search.find import Question, find
from sessionlog.search.query import parse_query
from sessionlog.search.store import index_path
from tests.search.plain_scan import logs_of, place_of, texts_of

WORD = re.compile("[a-z0-9]+")
MEGABYTES = 6  # of each agent


@pytest.fixture
def home(tmp_path):
    """Logs of Claude Code, Codex and native ones, with slices of files of this machine."""
    chance = random.Random(18)
    texts = Slices(chance, megabytes=10)
    ClaudeHome(chance, texts, Truth(), tmp_path / "claude").write(MEGABYTES << 20)
    CodexHome(chance, texts, Truth(), tmp_path / "codex").write(MEGABYTES << 20)
    generate(tmp_path / "native", megabytes=MEGABYTES)
    return {
        "HOME": str(tmp_path / "nobody"), "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
        "CODEX_HOME": str(tmp_path / "codex"), "SESSIONLOG_DIR": str(tmp_path / "native"),
    }  # fmt: skip


def lines_of(env):
    """(agents, line → its words in their order) of all ASCII lines of all texts."""
    agents, lines = set(), {}
    for log in logs_of(env):
        agents.add(log.source.id)
        for _, text in texts_of(log):
            for line in text.split("\n"):
                if line.isascii() and line not in lines:
                    lines[line] = WORD.findall(line.lower())
    return agents, {line: words for line, words in lines.items() if words}


def queries_of(lines, chance):
    """Twelve words from the commonest to the rarest, and eight phrases of two to four words."""
    counts = {}
    for words in lines.values():
        for word in set(words):
            counts[word] = counts.get(word, 0) + 1
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    words = [ranked[round((len(ranked) - 1) * (place / 11) ** 3)] for place in range(12)]
    long = sorted(line for line, words in lines.items() if len(words) >= 6)
    phrases = []
    for length in (2, 2, 2, 3, 3, 3, 4, 4):
        given = lines[chance.choice(long)]
        start = chance.randrange(len(given) - length)
        phrases.append(" ".join(given[start : start + length]))
    return [*words, *phrases]


def has(words, wanted):
    """Whether words are among others, one after the other."""
    return any(words[place : place + len(wanted)] == wanted for place in range(len(words) - len(wanted) + 1))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_line_that_a_plain_scan_finds_is_found(home, tmp_path):
    """All hits of each query are asked for, and each has what was searched for; `pytest -s` prints the table."""
    agents, lines = lines_of(home)
    assert agents == {"claude-code", "codex", "native"}
    place = place_of(home, tmp_path)
    queries = queries_of(lines, random.Random(7))
    find(Question(query=parse_query(queries[:1])), place)
    size = sum(os.path.getsize(os.path.join(folder, name)) for part in ("claude", "codex", "native")
               for folder, _, names in os.walk(tmp_path / part) for name in names)  # fmt: skip
    stored = os.path.getsize(index_path(place.ledger))
    print(f"\n{size / 1e6:.0f} MB of logs, index {stored / 1e6:.1f} MB ({stored / size:.1%})")
    total = 0
    for query in queries:
        wanted = query.split(" ")
        truth = [line for line, words in lines.items() if has(words, wanted)]
        found = find(Question(query=parse_query([query]), limit=None), place)
        newest = find(Question(query=parse_query([query])), place)
        text = "\0".join(hit.item.text for hit in found.hits)
        missing = [line for line in truth if line not in text]
        print(f"{query:40.40} {len(truth):7,} lines {len(found.hits):7,} hits {len(truth) - len(missing):7,} found"
              f" {newest.seconds * 1e3:6.0f} ms")  # fmt: skip
        assert missing == []
        assert truth
        assert all(has(WORD.findall(hit.item.text.lower()), wanted) for hit in found.hits if hit.item.text.isascii())
        total += len(truth)
    print(f"recall {total:,} of {total:,} lines")
    assert total > 1000
