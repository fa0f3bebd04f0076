"""The grid of a sweep: what it combines, where it is read from, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from handfast.cli.sweep.grid import Grid
from handfast.engines.hardware.layout import JoinLayout, TupleLayout
from handfast.errors import SpecError

NOTHING: dict[str, str | None] = {}


def test_every_combination_is_a_configuration() -> None:
    grid = Grid(cores=(2, 4), segment=(4, 8), network=("tree",), network_buffer=(4, 8), match_rate=(0.5,))
    made = grid.configurations
    assert 8 == len(made) == len({own.name for own in made})
    assert {(2, 4), (2, 8), (4, 4), (4, 8)} == {(own.cores, own.segment) for own in made}
    assert {own.cores * own.segment for own in made} == {own.tuples for own in made}
    assert ("cores", "segment", "network_buffer") == grid.varied


def test_what_only_a_tree_has_is_varied_for_trees_alone() -> None:
    grid = Grid(core_buffer=(4, 8), merger=("states", "round_robin"), match_rate=(1.0,))
    count = {name: sum(own.network == name for own in grid.configurations) for name in grid.network}
    assert {"tree": 4, "adaptive": 1, "pipelined": 1} == count


def test_the_streams_may_be_longer_than_the_windows() -> None:
    grid = Grid(tuples=(100, 200), match_rate=(1.0,), network=("tree",))
    assert [100, 200] == [own.tuples for own in grid.configurations]


def test_the_circuit_is_what_the_configuration_says() -> None:
    layout = JoinLayout(TupleLayout((), 4), TupleLayout((), 4))
    for made in Grid(cores=(3,), network_buffer=(5,), core_buffer=(6,), match_rate=(1.0,)).configurations:
        circuit = made.shape.build(layout, lambda m, r, s: 1)
        depths = [fifo.depth for fifo in circuit.fifos]
        assert ([6, 6, 6, 5, 5, 5] if made.network == "tree" else [5, 5, 5]) == depths


def test_a_file_gives_values_and_lists_and_options_take_their_place(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text('cores = [2, 4]\nnetwork = "tree"\nmatch_rate = 1\nseed = [1, 2, 3]\n')
    grid = Grid.read(path, {"seed": "7, 8", "segment": None, "match_rate": "0.25,1"})
    assert ((2, 4), ("tree",), (0.25, 1), (7, 8)) == (grid.cores, grid.network, grid.match_rate, grid.seed)
    assert Grid() == Grid.read(None, NOTHING)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cores = 0", "The grid's cores must be a whole number from 1 on, not 0"),
        ("cores = true", "The grid's cores must be a whole number from 1 on, not True"),
        ("cores = []", "The grid's cores has no value: give at least one, or leave it out"),
        ("match_rate = 40", "The grid's match_rate must be a number from 0 to 1, not 40"),
        ('pattern = "wave"', "The grid's pattern must be one of 'random', 'gaussian', 'burst', not 'wave'"),
        (
            'network = "bus"',
            "The grid's network must be one of 'tree', 'adaptive', 'pipelined', not 'bus'",
        ),
        (
            "network_buffer = 3",
            "The grid's network_buffer must be more than its margin=3, not 3: the buffer would be almost full",
        ),
        ("core = 4", "{path} has 'core', which is no parameter of a grid; did you mean 'cores'? (cores, segment, "),
        ("cores = [", "{path} is not valid TOML: "),
    ],
)
def test_what_is_no_grid_is_named_with_its_rule(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(text)
    with pytest.raises(SpecError) as raised:
        Grid.read(path, NOTHING)
    assert str(raised.value).startswith(message.format(path=path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="There is no file"):
        Grid.read(tmp_path / "none.toml", NOTHING)


def test_a_word_where_a_number_belongs_is_named() -> None:
    with pytest.raises(SpecError, match="The grid's cores must be a whole number from 1 on, not 'many'"):
        Grid.read(None, {"cores": "2,many"})
