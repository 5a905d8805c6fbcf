"""Identifiers and hashes that rows are found by."""

from __future__ import annotations

import hashlib
import secrets
import time
from uuid import UUID


def uuid7() -> UUID:
    """A UUID that sorts by creation time, so that new rows land at the end of the index (RFC 9562, 5.7)."""
    milliseconds = time.time_ns() // 1_000_000
    value = milliseconds << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62)
    return UUID(int=value)


def key_hash(*parts: str) -> str:
    """SHA-256 over length-prefixed parts, in hex.

    Databases fold case, accents and trailing blanks in a unique column and let NULLs through a composite one; a hash
    of the bytes does neither. The length prefix keeps ("a", "bc") and ("ab", "c") apart.
    """
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()
