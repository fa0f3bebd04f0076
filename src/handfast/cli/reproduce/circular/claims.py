"""What the paper says of rings, and what follows from its design, held against what the rings do here."""

from __future__ import annotations

from itertools import pairwise

from handfast.cli.reproduce.circular.experiments import RingEvaluation
from handfast.cli.reproduce.claims import FAILS, HOLDS, NOT_COMPARED, Claim

CLOSE = 0.01  # how near the throughput must be to what N stages can do at most
BUSY = 0.9  # the part of their cycles in which stages compare, at the least, where much matches
SAVED = 0.7  # of the ring's scan cycles, at the most, where next to nothing matches
BUSY_FOR = (5, 8)  # streams for which that was not so with the paper's order


def claims(made: RingEvaluation) -> list[Claim]:
    """Every line of the comparison."""
    about_rings = [*_linear(made), _small(made), _more_for_fewer(made), *_busy(made)]
    return [*about_rings, _saved(made), _nothing_lost(made)]


def _hardly_matches(made: RingEvaluation) -> bool:
    """Whether next to nothing matches at the lowest match probability."""
    return made.scale.probabilities[0] * made.scale.window <= 0.01


def _matches_much(made: RingEvaluation) -> bool:
    """Whether a tuple finds a partner in every window at the highest match probability."""
    return made.scale.probabilities[-1] * made.scale.window >= 1


def _verdict(holds: bool, words: str, compared: bool) -> str:
    """What a comparison is worth; none is made where other match probabilities were asked for."""
    return NOT_COMPARED if not compared else words if holds else FAILS


def _linear(made: RingEvaluation) -> list[Claim]:
    found = []
    low = made.scale.probabilities[0]
    for streams in made.scale.streams:
        wanted, ours = made.bound(streams, low), made.cost(made.steady(streams, low)).throughput
        difference = ours / wanted - 1
        found.append(
            Claim(
                f"tuples a second with full windows, {streams} streams, mp {low:g}",
                "Fig. 7a: linear in N",
                f"N · f / w: {wanted:,.0f}",
                f"{ours:,.0f}",
                difference,
                _verdict(abs(difference) <= CLOSE, f"✔ within {CLOSE:.0%}", _hardly_matches(made)),
            )
        )
    return found


def _falls(made: RingEvaluation, place: int) -> list[float]:
    """By number of streams, how much less the throughput is than where nothing matches."""
    scale = made.scale
    return [
        1
        - made.cost(made.steady(streams, scale.probabilities[place])).throughput
        / made.cost(made.steady(streams, scale.probabilities[0])).throughput
        for streams in scale.streams
    ]


def _small(made: RingEvaluation) -> Claim:
    falls = _falls(made, 1)
    ours = f"{min(falls):.0%} to {max(falls):.0%} at mp {made.scale.probabilities[1]:g}"
    return Claim(
        "how much lower the throughput is, Figure 7b", "§IV", "“only a small reduction”", ours, None, NOT_COMPARED
    )


def _more_for_fewer(made: RingEvaluation) -> Claim:
    falls = _falls(made, -1)
    ours = ", ".join(f"{fall:.0%}" for fall in falls)
    few, *_, many = made.scale.streams
    return Claim(
        f"the same at mp {made.scale.probabilities[-1]:g}, for {few} to {many} streams",
        "§IV, Fig. 7c",
        "smaller for fewer streams",
        ours,
        None,
        _verdict(all(fewer < more for fewer, more in pairwise(falls)), HOLDS, _matches_much(made)),
    )


def _busy(made: RingEvaluation) -> list[Claim]:
    high = made.scale.probabilities[-1]
    found = []
    for streams in BUSY_FOR:
        ours = made.cost(made.steady(streams, high)).utilisation
        what = f"part of their cycles in which stages compare, {streams} streams, mp {high:g}"
        found.append(
            Claim(
                what, "", f"goal: {BUSY:.0%}", f"{ours:.1%}", None, _verdict(ours >= BUSY, HOLDS, _matches_much(made))
            )
        )
    return found


def saved(made: RingEvaluation, probability: float, kept: float) -> float:
    """What all stages of a line with a stash compare, as a part of what those of a ring do."""
    return made.cost(made.stashed(probability, kept)).groups / made.cost(made.unstashed(probability)).groups


def _saved(made: RingEvaluation) -> Claim:
    low = made.scale.probabilities[0]
    ours = saved(made, low, made.scale.kept[0])
    what = f"scan cycles of all stages with a stash ÷ without, 3 streams, mp {low:g}"
    verdict = _verdict(ours <= SAVED, HOLDS, _hardly_matches(made))
    return Claim(what, "§III: fewer", f"goal: {SAVED:.0%} at most", f"{ours:.1%}", None, verdict)


def _nothing_lost(made: RingEvaluation) -> Claim:
    ours = made.dropped()
    what = "intermediates dropped, in all runs"
    return Claim(what, "§II-C: dropped beyond a fill-ratio", "", f"{ours:,}", None, HOLDS if ours == 0 else FAILS)
