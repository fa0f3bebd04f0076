"""Where the cores run: one on each CPU where they fill the machine, along the NUMA nodes where there are several."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import handfast as hf
from handfast.engines.local import chain_driver, crew
from handfast.engines.local import placement as placement_module
from handfast.engines.local.placement import Placement, numa_nodes, pin, place, placement


def test_the_nodes_are_read_as_linux_lists_them(tmp_path: Path) -> None:
    for node, cpus in {"node0": "0-2,8", "node1": "3,5-6", "node10": "20", "node2": ""}.items():
        (tmp_path / node).mkdir()
        (tmp_path / node / "cpulist").write_text(cpus + "\n")
    assert [[0, 1, 2, 8], [3, 5, 6], [20]] == numa_nodes(tmp_path)
    assert [] == numa_nodes(tmp_path / "none")


def test_cores_are_pinned_node_by_node() -> None:
    nodes = [[0, 1, 2], [3, 4, 5]]
    assert (0, 1, 2, 3) == place(4, nodes, range(6)).cpus
    assert "pinned along 2 NUMA nodes, the driver on the other CPUs" == place(4, nodes, range(6)).reason
    assert (1, 2, 3) == place(3, nodes, [1, 2, 3, 4]).cpus


@pytest.mark.parametrize("nodes", [[[0, 2], [1, 3]], [[0, 2, 1, 3]]])
def test_cores_that_fill_the_machine_are_pinned_one_to_each_cpu(nodes: list[list[int]]) -> None:
    assert (0, 2, 1, 3) == place(4, nodes, range(4)).cpus
    assert "pinned, one to each CPU" == place(4, nodes, range(4)).reason
    assert (0, 1, 2, 3) == place(4, [], range(4)).cpus  # where the nodes are not known


def test_cores_are_not_pinned_where_it_would_not_help() -> None:
    assert (None, None) == place(2, [[0, 1, 2, 3]], range(4)).cpus
    assert "the machine has one NUMA node, and CPUs to spare" in place(2, [[0, 1, 2]], range(3)).reason
    assert (None,) * 5 == place(5, [[0, 1], [2, 3]], range(4)).cpus
    assert "not pinned: 5 cores share 4 CPUs" == place(5, [[0, 1], [2, 3]], range(4)).reason
    for nodes, usable in ([[0]], [0]), ([[0], [1]], [0]), ([[0], [1]], [0, 1]):
        assert (None,) == place(1, nodes, usable).cpus
        assert "not pinned: there is only one core" == place(1, nodes, usable).reason
    assert (None, None) == place(2, [[0, 1]], range(4)).cpus  # of four CPUs, two are not listed
    assert 2 == len(placement(2).cpus)


def test_a_system_without_affinity_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_setaffinity")
    assert (None, None) == placement(2).cpus
    assert "does not let a thread choose its CPU" in placement(2).reason


def test_a_thread_stays_on_its_cpu() -> None:
    before = os.sched_getaffinity(0)
    try:
        pin(min(before))
        assert {min(before)} == os.sched_getaffinity(0)
    finally:
        os.sched_setaffinity(0, before)
    pin(None)
    assert before == os.sched_getaffinity(0)


@pytest.mark.parametrize("forwarding", ["low-latency", "handshake"])
def test_the_threads_of_a_join_of_tables_are_pinned_as_explain_says(
    monkeypatch: pytest.MonkeyPatch, forwarding: str
) -> None:
    pinned: list[int | None] = []
    for module in (placement_module, crew):
        monkeypatch.setattr(module, "pin", pinned.append)
    for module in (placement_module, chain_driver):
        monkeypatch.setattr(module, "placement", lambda cores: Placement((3, 5), "pinned for a test"))
    rows = pa.table({"ts": pa.array(range(100), pa.timestamp("us")), "x": range(100)})
    options = hf.LocalOptions(cores=2, forwarding=forwarding)
    joined = hf.join({"r": rows, "s": rows}, on="r.x = s.x", window="1 hour", time="ts", options=options)
    assert 100 == joined.num_rows
    assert pinned
    assert set(pinned) <= {3, 5}
