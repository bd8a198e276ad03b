"""The currency in which tables show money. Logs, the ledger, JSON and CSV always use US dollars.

A context variable holds it: it is set where settings are read, and ends with the command. The rate is the user's, from
config.toml; no rate is ever fetched.
"""

from __future__ import annotations

from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "¥", "INR": "₹", "KRW": "₩", "UAH": "₴", "ILS": "₪"}
_KEYS = ("code", "rate", "date")
_CODE = 3
_LARGEST_RATE = 1e12


class Currency:
    """A currency and its rate.

    Attributes:
        code: Its ISO 4217 code.
        sign: The prefix of an amount.
        rate: Its units per US dollar.
        date: The day of the rate, as the user wrote it.
    """

    __slots__ = ("code", "date", "rate", "sign")

    def __init__(self, code: str = "USD", rate: float = 1.0, date: str = "") -> None:
        self.code = code
        self.sign = _SIGNS.get(code, f"{code} ")
        self.rate = rate
        self.date = date

    @property
    def note(self) -> str:
        """The note below a table; empty for US dollars."""
        if self.code == "USD":
            return ""
        day = f" of {self.date}" if self.date else ""
        return f"{self.sign.strip()}: {self.rate:g} {self.code} for a US dollar, your rate{day} in config.toml"


_SHOWN: ContextVar[Currency] = ContextVar("currency", default=Currency())  # noqa: B039 - it is never mutated


def currency() -> Currency:
    """Return the currency in which money is shown."""
    return _SHOWN.get()


def show_money_in(chosen: Currency) -> None:
    """Set the currency in which money is shown, until the context ends."""
    _SHOWN.set(chosen)


def parse_currency(table: Mapping[str, Any], *, place: str) -> Currency:
    """Parse a `[currency]` table: `code` and `rate`, and optionally the `date` of the rate.

    Raises:
        InvalidSettings: A key is unknown, or a value cannot be used; the message begins with `place`.
    """
    if not table:
        return Currency()
    from sessionlog.errors import InvalidSettings

    if unknown := sorted(table.keys() - set(_KEYS)):
        raise InvalidSettings(f"{place}: unknown key {unknown[0]!r} in [currency]; known are {', '.join(_KEYS)}")
    code, rate, date = table.get("code"), table.get("rate"), table.get("date", "")
    if not isinstance(code, str) or len(code) != _CODE or not (code.isascii() and code.isalpha() and code.isupper()):
        raise InvalidSettings(f'{place}: [currency] code is {code!r}, but it is three letters such as "EUR"')
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= _LARGEST_RATE:
        raise InvalidSettings(
            f"{place}: [currency] rate is {rate!r}, but it is a number above 0: the {code} for one US dollar"
        )
    if code == "USD" and rate != 1:
        raise InvalidSettings(f"{place}: [currency] rate is {rate!r}, but a US dollar is one US dollar")
    return Currency(code, float(rate), str(date))
