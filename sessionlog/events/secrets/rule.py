"""Rule: one row of the table of secrets, and the sources that rows name."""

from __future__ import annotations

GITLEAKS = "gitleaks config/gitleaks.toml"
DETECT = "detect-secrets 1.5.0"
TRUFFLEHOG = "trufflehog's detectors, not read again for this table"
VENDOR = "the vendor's known prefix, not checked against its documentation"

HEX = "0a1b2c3d4e5f6789"
MIX = "a1B2c3D4"
"""Pieces of samples."""


class Rule:
    """One shape of a secret.

    Attributes:
        id: The rule's name in reports.
        what: The vendor and the kind of secret.
        prefixes: Prefixes of the word, three bytes at least; empty if there is none.
        pattern: The whole secret, from `back` bytes before the word.
        preceded_by: Texts directly before the word, if the word has no known prefix.
        back: How many bytes before the word the secret begins; None: at the text of `preceded_by`.
        far: A text before the word, like `preceded_by`, but at any distance.
        least: Least length of the word in bytes.
        positive: Samples that match.
        negative: Samples that do not.
        source: The source of the facts; a rule list was read on `DATE`.
    """

    __slots__ = (
        "back", "far", "id", "least", "negative", "pattern", "positive", "preceded_by", "prefixes", "source", "what",
    )  # fmt: skip

    def __init__(
        self,
        id: str,  # noqa: A002 - the word of the rule lists
        what: str,
        prefixes: str,
        pattern: bytes,
        *,
        positive: tuple[str, ...],
        negative: tuple[str, ...] = (),
        source: str = VENDOR,
        preceded_by: str = "",
        back: int | None = None,
        far: str = "",
        least: int = 20,
    ) -> None:
        self.id = id
        self.what = what
        self.prefixes = tuple(prefixes.split())
        self.pattern = pattern
        self.preceded_by = tuple(preceded_by.split())
        self.back = back
        self.far = far.encode()
        self.least = least
        self.positive = positive
        self.negative = negative
        self.source = source
