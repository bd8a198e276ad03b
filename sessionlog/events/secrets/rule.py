"""Rule: one row of the table of secrets, and the sources that rows name."""

from __future__ import annotations

GITLEAKS = "gitleaks config/gitleaks.toml"
DETECT = "detect-secrets 1.5.0"
TRUFFLEHOG = "trufflehog's detectors, not read again for this table"
VENDOR = "the vendor's known prefix, not checked against its documentation"

HEX = "0a1b2c3d4e5f6789"
MIX = "a1B2c3D4"
"""What samples are made of."""


class Rule:
    """One shape of a secret.

    Attributes:
        id: Its name in reports.
        what: What it is a secret of.
        heads: How the word begins, three bytes at least; empty where that is not known.
        pattern: The whole secret, from `back` bytes before the word.
        behind: What may stand before the word, where the word alone says nothing.
        back: How many bytes before the word the secret begins; None if with what stands before it.
        far: The same as `behind` where something of any length stands between it and the word.
        least: Bytes of the word that its head begins.
        positive: Samples that match.
        negative: Samples that do not.
        source: Where the facts are from; a rule list was read on `DATE`.
    """

    __slots__ = ("back", "behind", "far", "heads", "id", "least", "negative", "pattern", "positive", "source", "what")

    def __init__(
        self,
        id: str,  # noqa: A002 - the word of the rule lists
        what: str,
        heads: str,
        pattern: bytes,
        *,
        positive: tuple[str, ...],
        negative: tuple[str, ...] = (),
        source: str = VENDOR,
        behind: str = "",
        back: int | None = None,
        far: str = "",
        least: int = 20,
    ) -> None:
        self.id = id
        self.what = what
        self.heads = tuple(heads.split())
        self.pattern = pattern
        self.behind = tuple(behind.split())
        self.back = back
        self.far = far.encode()
        self.least = least
        self.positive = positive
        self.negative = negative
        self.source = source
