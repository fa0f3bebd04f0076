"""Four sensors along a corridor, in this process, row by row: who walked past all of them?

    python examples/four_sensors.py

Each sensor sees that somebody passes, when, and how far from the wall, but not who. A walker needs 2 to 5 seconds from
one sensor to the next and drifts by at most 30 centimetres meanwhile. So a track is one reading of each sensor, and a
chain of three steps, each a band in time and a band in place. A reading waits for as long as the rest of the way may
take: 15 seconds at the first sensor, 10 at the second, 5 at the third. The fourth closes the track.

The readings are pushed into a session as they come, and a track is given with the reading that closes it. `walker` is
there to count who was mixed up; the join does not read it.
"""

import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa

import handfast as hf

SENSORS = ("a", "b", "c", "d")
SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("wall", pa.float64()), ("walker", pa.int64())])


def step(near: str, far: str) -> str:
    """That one reading may be the next one of the same walker."""
    time = f"{far}.at BETWEEN {near}.at + INTERVAL 2 SECONDS AND {near}.at + INTERVAL 5 SECONDS"
    return f"{time} AND ABS({far}.wall - {near}.wall) <= 0.3"


TRACK = hf.JoinSpec(
    SENSORS,
    " AND ".join([step("a", "b"), step("b", "c"), step("c", "d")]),
    # a reading exactly as old as its window is long has left it, hence the millisecond
    window={"a": "15001 ms", "b": "10001 ms", "c": "5001 ms", "d": "1 ms"},
    time="at",
    lateness="0 seconds",
)


def readings(walkers: int = 60) -> list[tuple[str, dict[str, object]]]:
    """What the sensors see of so many walkers, and of as many who turn back: sensor and reading, by time."""
    rng = random.Random(4)
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    seen = []
    for walker in range(2 * walkers):
        turns_back = walker % 2
        at, wall = noon + timedelta(seconds=3 * walker + rng.random()), rng.uniform(0.5, 4)
        for sensor in SENSORS[: rng.randint(1, 3)] if turns_back else SENSORS:
            seen.append((sensor, {"at": at, "wall": round(wall, 2), "walker": walker}))
            at += timedelta(seconds=rng.uniform(2, 5))
            wall += rng.uniform(-0.28, 0.28)
    return sorted(seen, key=lambda reading: reading[1]["at"])


def main() -> pa.Table:
    tracks = []
    with hf.session(TRACK, dict.fromkeys(SENSORS, SCHEMA)) as session:
        for sensor, row in readings():
            tracks += session.push(sensor, pa.Table.from_pylist([row], SCHEMA))
    found = pa.Table.from_batches(tracks, session.schema)
    walkers = [{track[f"{sensor}_walker"] for sensor in SENSORS} for track in found.to_pylist()]
    true = [who for who in walkers if len(who) == 1]
    print(f"{len(found)} tracks: {len(true)} of 60 walkers, {len(walkers) - len(true)} mixed up of several")
    return found


if __name__ == "__main__":
    found = main()
