"""The shipped price list is what the generator writes, and names its source."""

import importlib.metadata
import sys
import zlib
from decimal import Decimal
from importlib.resources import files
from types import SimpleNamespace

import make_prices
import pytest

from sessionlog.errors import InvalidPrices, MissingExtra
from sessionlog.pricing.price_list import load_price_list, parse_price_list


def shipped():
    return zlib.decompress(files("sessionlog").joinpath("data/prices.json.gz").read_bytes(), 31)


@pytest.fixture
def same_version():
    """Skip unless the installed genai-prices is the one the list was made from."""
    pytest.importorskip("genai_prices")
    if load_price_list().source != f"genai-prices {importlib.metadata.version('genai-prices')}":
        pytest.skip("another version of genai-prices than the shipped list's is installed")


def test_the_list_is_made_again_to_the_byte(same_version, tmp_path):
    """The same version of the source gives the same content, date included, and the file can be read."""
    target = tmp_path / "prices.json.gz"
    assert make_prices.main(["--output", str(target)]) == 0
    assert zlib.decompress(target.read_bytes(), 31) == shipped()
    assert make_prices.compress(b"x") == make_prices.compress(b"x")


def test_the_list_names_source_date_and_licence():
    """Provenance is in the file, and its notice lies beside it."""
    price_list = parse_price_list(shipped())
    assert (price_list.source, price_list.digest) == (load_price_list().source, load_price_list().digest)
    assert price_list.source.startswith("genai-prices ")
    assert len(price_list.digest) == 64
    notice = files("sessionlog").joinpath("data/NOTICE").read_text()
    assert price_list.source in notice
    assert "Copyright (c) Pydantic Services Inc. 2025 to present" in notice
    assert b"MIT, Copyright (c) Pydantic Services Inc." in shipped()


def test_the_list_is_small():
    """The file stays below 100 kB in a wheel."""
    assert len(files("sessionlog").joinpath("data/prices.json.gz").read_bytes()) < 100_000


def test_without_the_package_it_says_what_to_install(monkeypatch):
    """The generator needs genai-prices, which is part of the test extra."""
    monkeypatch.setitem(sys.modules, "genai_prices.data", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sessionlog\[test\]'"):
        make_prices.build_list()


def test_a_new_version_needs_its_date(monkeypatch, capsys, tmp_path):
    """The date of a version that is not shipped is not guessed."""
    pytest.importorskip("genai_prices")
    monkeypatch.setattr(make_prices, "version", lambda _: "99.0")
    with pytest.raises(SystemExit) as stop:
        make_prices.main(["--output", str(tmp_path / "p")])
    assert stop.value.code == 2
    assert (
        "genai-prices 99.0 is not the shipped version; give the day of its release with --date"
        in capsys.readouterr().err
    )
    assert parse_price_list(make_prices.build_list("2027-01-31")).date == "2027-01-31"


def test_an_unknown_kind_of_price_is_not_left_out_silently(monkeypatch):
    """A later version with a new price for text tokens stops the generator by name."""
    fake = SimpleNamespace(
        id="p",
        api_pattern="x",
        provider_match=None,
        model_match=None,
        fallback_model_providers=None,
        models=[
            SimpleNamespace(
                id="m",
                match=SimpleNamespace(equals="M"),
                description=None,
                price_comments=None,
                price_variants=None,
                prices=SimpleNamespace(input_mtok=Decimal(1), cache_write_2h_mtok=Decimal(2)),
            )
        ],
    )
    monkeypatch.setitem(sys.modules, "genai_prices.data", SimpleNamespace(providers=[fake]))
    monkeypatch.setattr(make_prices, "version", lambda _: "99.0")
    with pytest.raises(InvalidPrices, match="m has a price 'cache_write_2h_mtok'"):
        make_prices.build_list("2027-01-31")
