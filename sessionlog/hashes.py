"""Hashes: names as numbers of 64 bits, bytes as short text, and digests of texts, the same on every machine."""

from __future__ import annotations

try:
    from _blake2 import blake2b  # hashlib would add 3 ms for other algorithms
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b", "digest_of", "hash_bytes", "hash_name", "hash_with"]


def hash_name(name: str, seed: bytes) -> int:
    """Return a name as a number of 64 bits; two of a million names share one with a chance of 1 in 30 million."""
    return hash_with(blake2b(seed, digest_size=8), name)


def hash_with(seeded: blake2b, name: str) -> int:
    """Return `hash_name` of a name, for many names with one seed."""
    hashed = seeded.copy()  # half the time of making a new one
    hashed.update(name.encode("utf-8", "surrogatepass"))
    return int.from_bytes(hashed.digest(), "little", signed=True)


def hash_bytes(data: bytes) -> str:
    """Return `length:hash` of bytes."""
    return f"{len(data)}:{blake2b(data, digest_size=12).hexdigest()}"


def digest_of(*texts: str) -> bytes:
    """Return a digest of 16 bytes of a list of texts; those of `("ab", "c")` and `("a", "bc")` differ."""
    state = blake2b(digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        state.update(b"%d:" % len(data))
        state.update(data)
    return state.digest()
