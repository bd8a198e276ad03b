"""A ModelPricing can only hold prices."""

import math

import pytest

from sessionlog.errors import InvalidPrices
from sessionlog.pricing import ModelPricing

NO_PRICES = [-1, -0.01, math.nan, math.inf, -math.inf, True, "3", None, 10**400]


@pytest.mark.parametrize("wrong", NO_PRICES)
@pytest.mark.parametrize("name", ["input_per_mtok", "output_per_mtok"])
def test_p24_what_is_no_price_is_refused(name, wrong):
    """Negative, infinite, missing and other things are refused, and the field is named."""
    with pytest.raises(InvalidPrices, match=name):
        ModelPricing(**{"input_per_mtok": 1, "output_per_mtok": 1, name: wrong})


@pytest.mark.parametrize("wrong", [w for w in NO_PRICES if w is not None])
@pytest.mark.parametrize("name", ["cache_read_per_mtok", "cache_write_per_mtok", "cache_write_1h_per_mtok"])
def test_cache_prices_may_be_missing_but_not_wrong(name, wrong):
    """A cache price is a price or None."""
    assert getattr(ModelPricing(1, 2, **{name: None}), name) is None
    with pytest.raises(InvalidPrices, match=name):
        ModelPricing(1, 2, **{name: wrong})


def test_it_is_a_value():
    """Equal prices are equal and hash alike; nothing can be changed."""
    assert ModelPricing(1, 2.0) == ModelPricing(1.0, 2)
    assert hash(ModelPricing(1, 2)) == hash(ModelPricing(1.0, 2.0))
    with pytest.raises(AttributeError):
        ModelPricing(1, 2).input_per_mtok = 3
