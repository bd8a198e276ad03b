"""The shipped table of context windows is what the generator writes, and names its source."""

import importlib.metadata
import sys
from importlib.resources import files
from types import SimpleNamespace

import make_prices
import make_windows
import pytest

from sessionlog.context.windows import find_context_window
from sessionlog.errors import MissingExtra


def shipped():
    return files("sessionlog").joinpath("data/context_windows.tsv").read_text("ascii")


def rows(table):
    return dict(row.split("\t") for row in table.splitlines() if not row.startswith("#"))


@pytest.fixture
def same_version():
    """Skip unless the installed genai-prices is the one the table was made from."""
    pytest.importorskip("genai_prices")
    if f"# source: genai-prices {importlib.metadata.version('genai-prices')} " not in shipped():
        pytest.skip("another version of genai-prices than the shipped table's is installed")


def clause(name):
    return SimpleNamespace(equals=name)


def provider(key, claims="", **models):
    """A provider whose models have these windows; it is the maker of the names that begin with `claims`."""
    return SimpleNamespace(
        id=key,
        model_match=SimpleNamespace(is_match=lambda name: name.startswith(claims)) if claims else None,
        models=[
            SimpleNamespace(id=name, match=clause(name.upper()), context_window=window)
            for name, window in models.items()
        ],
    )


@pytest.fixture
def built(monkeypatch):
    """Build a table from given providers, with nothing added by hand; gives its rows."""

    def build(*providers):
        monkeypatch.setitem(sys.modules, "genai_prices.data", SimpleNamespace(providers=list(providers)))
        monkeypatch.setattr(make_prices, "version", lambda _: "99.0")
        monkeypatch.setattr(make_windows, "_LACKING", {})
        monkeypatch.setattr(make_windows, "_CORRECTED", {})
        return rows(make_windows.build_table("2027-01-31").decode("ascii"))

    return build


def test_the_table_is_made_again_to_the_byte(same_version, tmp_path):
    """The same version of the source gives the same bytes, the date included."""
    target = tmp_path / "windows.tsv"
    assert make_windows.main(["--output", str(target)]) == 0
    assert target.read_bytes() == shipped().encode("ascii")


def test_the_table_names_source_and_date():
    """Provenance is in the file, and its notice lies beside it."""
    head = shipped().splitlines()[:3]
    assert head[1].startswith("# source: genai-prices ")
    assert head[2].startswith("# retrieved: 20")
    notice = files("sessionlog").joinpath("data/NOTICE").read_text()
    assert "context_windows.tsv" in notice
    assert head[1].removeprefix("# source: ").partition(" (")[0] in notice


def test_the_table_is_sorted_and_plain():
    """Names are lower case and sorted, each once, with dashes only; windows are whole numbers of tokens."""
    names = [row.partition("\t")[0] for row in shipped().splitlines() if not row.startswith("#")]
    assert names == sorted(set(names))
    assert all(name == name.lower() and not set(name) & set("._@: ") for name in names)
    assert all(0 < int(window) <= 20_000_000 for window in rows(shipped()).values())


def test_additions_are_still_needed(same_version):
    """What a later version of the package has, and has right, need not be added any more."""
    from genai_prices.data import providers

    added = {**make_windows._LACKING, **make_windows._CORRECTED}
    assert all(find_context_window(name) == window for name, window in added.items())
    names = {name for _, name, _ in make_windows._statements(providers)}
    assert {name for name in make_windows._LACKING if make_windows._plain(name) in names} == set()


def test_the_maker_of_a_model_is_right(built):
    """Whatever most others state, also for a name with a date; without a maker the most frequent, then the largest."""
    table = built(
        provider("reseller", m1=5, q1=7, q2=1, **{"m1-2025-01-31": 5}),
        provider("maker", "m", m1=9),
        provider("other", m1=5, q1=7, q2=2),
        provider("third", q1=8),
    )
    assert table == {"m1": "9", "q1": "7", "q2": "2"}


def test_a_seller_with_limits_of_its_own_has_rows(built):
    """They are kept apart from the model's window, and only where they differ."""
    table = built(provider("github-copilot", m1=5, m2=9), provider("maker", "m", m1=9, m2=9))
    assert table == {"github-copilot/m1": "5", "m1": "9", "m2": "9"}


def test_googles_windows_are_ki(built):
    """Also where they are rounded to millions; another maker's million is one, and a seller's limit is its own."""
    table = built(
        provider("google", "gemini", **{"gemini-9": 1_000_000, "gemini-9-pro": 2_000_000, "gemini-9-live": 131_072}),
        provider("github-copilot", **{"gemini-9": 264_000}),
        provider("openrouter", **{"google/gemini-9": 1_048_576, "other": 1_000_000}),
    )
    assert table == {
        "gemini-9": "1048576", "gemini-9-live": "131072", "gemini-9-pro": "2097152", "github-copilot/gemini-9": "264000",
        "other": "1000000",
    }  # fmt: skip


def test_what_the_look_up_finds_anyhow_is_left_out(built):
    """A decorated name needs a row only if its window is another than the bare name's."""
    table = built(provider("p", m1=5, **{"us.anthropic.m1-v1:0": 5, "m1-preview": 5, "m1-0613": 6, "m2-preview": 7}))
    assert table == {"m1": "5", "m1-0613": "6", "m2-preview": "7"}


def test_what_has_no_window_has_no_row(built):
    """Unknown is not 0."""
    assert built(provider("p", m1=None)) == {}


def test_without_the_package_it_says_what_to_install(monkeypatch):
    """The generator needs genai-prices, which is part of the test extra."""
    monkeypatch.setitem(sys.modules, "genai_prices.data", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sessionlog\[test\]'"):
        make_windows.build_table()


def test_a_new_version_needs_its_date(monkeypatch, capsys, tmp_path):
    """The date of a version that is not shipped is not guessed."""
    pytest.importorskip("genai_prices")
    monkeypatch.setattr(make_prices, "version", lambda _: "99.0")
    with pytest.raises(SystemExit) as stop:
        make_windows.main(["--output", str(tmp_path / "w")])
    assert stop.value.code == 2
    assert "give the day of its release with --date" in capsys.readouterr().err
    assert b"\n# retrieved: 2027-01-31\n" in make_windows.build_table("2027-01-31")
