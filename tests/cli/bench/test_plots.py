"""The pictures: each is written, can be read, is as large as promised, and shows something."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from handfast.cli.bench import plots
from handfast.cli.bench.model import bubble
from handfast.errors import MissingExtraError
from handfast.flow.topology import ChainTopology

CORES = [2**power for power in range(11)]
LAW = {cores: 3000 * cores**0.5 for cores in CORES}
MODELLED = {cores: rate * (1 - 0.005 * cores**0.5) for cores, rate in LAW.items()}
BUBBLE = bubble(ChainTopology(8), 80, 300)

Draw = Callable[[Path], None]
PICTURES: dict[str, Draw] = {
    "scaling": lambda path: plots.scaling(
        path, {1: 2900.0, 2: 4100.0}, MODELLED, LAW, {8: 1400.0, 44: 3300.0}, "1 minute"
    ),
    "scaling of what was measured": lambda path: plots.scaling(path, {1: 2900.0, 2: 4100.0}, {}, {}, {}, "1 minute"),
    "bars": lambda path: plots.bars(path, "SIMD doubles the rate", "tuples a second", {"off": 2100.0, "on": 4900.0}),
    "ring": lambda path: plots.ring(
        path,
        {1: {3: [2e5, 2.1e5], 8: [1.9e5, 2e5]}, 2: {3: [3.9e5, 4e5], 8: [3.8e5, 4e5]}},
        {1: {3: 2e5, 8: 2e5}, 2: {3: 4e5, 8: 4e5}},
        {3: 6e5, 8: 16e5},
    ),
    "bubble": lambda path: plots.bubble(path, BUBBLE.by_age, BUBBLE.by_size, BUBBLE.times),
    "latency": lambda path: plots.latency(
        path, {"handshake": np.linspace(0.001, 30, 500).tolist(), "low latency": [0.0, 0.0004, 0.001], "none": []}
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_written_and_is_not_blank(name: str, tmp_path: Path) -> None:
    from matplotlib.image import imread

    path = tmp_path / "picture.png"
    PICTURES[name](path)
    assert path.read_bytes().startswith(b"\x89PNG")
    pixels = imread(path)
    assert (600, 900) == pixels.shape[:2]
    brightness = (pixels[..., :3].sum(axis=2) * 255).astype(int)
    assert len(np.unique(brightness)) > 50  # lines, letters and their edges
    inked = (pixels[..., :3] < 0.9).any(axis=2)
    assert inked.mean() > 0.01
    for part in np.array_split(inked, 2, axis=1):
        assert part.any()


@pytest.mark.parametrize("name", PICTURES)
def test_without_matplotlib_the_extra_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [module for module in sys.modules if module.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError) as raised:
        PICTURES[name](tmp_path / "picture.png")
    said = str(raised.value)
    assert said.startswith("Plots need the 'bench' extra (matplotlib is missing): pip install ")
    assert "'matplotlib<4,>=3.9'" in said


def test_pictures_share_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)  # another test may have wanted it
    for draw in PICTURES.values():
        draw(tmp_path / "picture.png")
    assert "matplotlib.pyplot" not in sys.modules
