"""What a plain scan of the logs finds, the search finds: every text of every agent's fixtures."""

import shutil

import pytest

from sessionlog.search.candidates import Scope, find_candidates
from sessionlog.search.find import open_up_to_date
from sessionlog.search.query import parse_query
from sessionlog.search.texts import read_texts
from tests.search.plain_scan import logs_of, place_of, texts_of, words_of
from tests.sources.homes import all_cases, build_home, environment

_ALL = all_cases()
FIRST = [case for number, case in enumerate(_ALL) if not number or case.split("/")[0] != _ALL[number - 1].split("/")[0]]


def missing_texts(case, folder):
    """The lines of texts that a search for their words does not find, and how many were searched."""
    home = build_home(case, folder)
    env = environment(case, home)
    missing, count = [], 0
    with open_up_to_date(place_of(env, folder)) as (index, notes):
        assert notes == []
        lines = {line for log in logs_of(env) for _, text in texts_of(log) for line in text.split("\n")}
        for line in sorted(lines):
            if words := sorted(words_of(line))[:6]:
                found = list(find_candidates(index, parse_query(words), Scope()).items)
                texts = read_texts(found, env)
                assert len(texts) == len(found), "every item is read again where its log has it"
                missing += [] if any(line in item.text for item in texts.values()) else [line]
                count += 1
    return missing, count


@pytest.mark.parametrize("case", FIRST)
def test_every_text_is_found(case, tmp_path):
    """Of one case of each agent: prompts, answers, reasoning, calls and results."""
    missing, _ = missing_texts(case, tmp_path)
    assert missing == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_text_of_all_cases_is_found(tmp_path):
    """Of all cases of all agents."""
    total = 0
    for case in _ALL:
        folder = tmp_path / "case"
        folder.mkdir()
        missing, count = missing_texts(case, folder)
        assert missing == [], case
        total += count
        shutil.rmtree(folder)
    assert total > 500
