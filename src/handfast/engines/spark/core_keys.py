"""Keys that Spark's own hash sends to partitions of our choice.

Spark puts a group with key k into partition `pmod(murmur3(k), partitions)`. Core number c is keyed by the number whose
hash is just c: so every core has a partition of its own, and the same key whatever the number of cores.
"""

from __future__ import annotations

_MASK = 0xFFFFFFFF
_C1, _C2, _SEED = 0xCC9E2D51, 0x1B873593, 42


def core_key(core: int) -> int:
    """The bigint whose hash in Spark is `core`."""
    hashed = _unscramble(core)
    after_low = _mix_hash(_SEED, 0)  # the key's low half is 0, and mixes to 0
    high = _unmix_word(_unmix_hash(hashed) ^ after_low)
    return (high - (1 << 32) if high >= 1 << 31 else high) << 32


def _rotate(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (32 - bits))) & _MASK


def _mix_hash(h: int, k: int) -> int:
    return (_rotate(h ^ k, 13) * 5 + 0xE6546B64) & _MASK


def _unmix_hash(h: int) -> int:
    return _rotate(((h - 0xE6546B64) * pow(5, -1, 1 << 32)) & _MASK, 19)


def _unmix_word(k: int) -> int:
    k = (k * pow(_C2, -1, 1 << 32)) & _MASK
    return (_rotate(k, 17) * pow(_C1, -1, 1 << 32)) & _MASK


def _unscramble(h: int) -> int:
    """The state before murmur3's last scrambling of an 8-byte key's hash."""
    h ^= h >> 16
    h = (h * pow(0xC2B2AE35, -1, 1 << 32)) & _MASK
    h ^= (h >> 13) ^ (h >> 26)
    h = (h * pow(0x85EBCA6B, -1, 1 << 32)) & _MASK
    h ^= h >> 16
    return h ^ 8
