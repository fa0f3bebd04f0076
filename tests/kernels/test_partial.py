"""Partial matches: what a different member finds is fanned out to exactly those that have it."""

from __future__ import annotations

import numpy as np
import pytest

from handfast.kernels.partial import distinct, fan_out, left_over


@pytest.mark.parametrize("spread", [5, 40, 100_000])  # the widest is sorted, the others are marked
def test_every_member_is_one_of_the_different_ones(spread: int) -> None:
    members = 1_000_000 + np.random.default_rng(3).integers(0, spread, 60)
    different, which = distinct(members)
    assert sorted(set(members.tolist())) == different.tolist()
    assert members.tolist() == different[which].tolist()


@pytest.mark.parametrize("most", [1, 7, 1 << 16])
def test_every_partial_match_is_paired_with_every_partner_of_its_member(most: int) -> None:
    rng = np.random.default_rng(5)
    _, which = distinct(rng.integers(0, 20, 50))
    at, found = rng.integers(0, which.max() + 1, 30), rng.integers(0, 1_000, 30)
    right = sorted((row, p) for k, p in zip(at, found, strict=True) for row in np.flatnonzero(which == k).tolist())
    pieces = list(fan_out(which, at, found, most))
    given = [(int(row), int(p)) for rows, partners in pieces for row, p in zip(rows, partners, strict=True)]
    assert right == sorted(given)
    largest = int(np.bincount(which).max())
    assert all(len(rows) <= max(most, largest) for rows, _ in pieces)


def test_what_was_kept_is_told_by_its_order() -> None:
    r, s = np.array([4, 4, 1, 4, 2, 1]), np.array([9, 8, 7, 9, 7, 7])
    fates = {(4, 9): True, (4, 8): False, (1, 7): True, (2, 7): False}
    held = np.array([fates[pair] for pair in zip(r.tolist(), s.tolist(), strict=True)])
    assert held.tolist() == left_over((r, s), (r[held], s[held])).tolist()
    assert [False] * 6 == left_over((r, s), (r[:0], s[:0])).tolist()
