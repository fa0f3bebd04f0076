"""Where the cores run: along the NUMA nodes where there are several, and never where the driver would have no place."""

from __future__ import annotations

import os
from pathlib import Path

from handfast.engines.local.layout import layout, numa_nodes, pin, plan_layout


def test_the_nodes_are_read_as_linux_lists_them(tmp_path: Path) -> None:
    for node, cpus in {"node0": "0-2,8", "node1": "3,5-6", "node10": "20", "node2": ""}.items():
        (tmp_path / node).mkdir()
        (tmp_path / node / "cpulist").write_text(cpus + "\n")
    assert [[0, 1, 2, 8], [3, 5, 6], [20]] == numa_nodes(tmp_path)
    assert [] == numa_nodes(tmp_path / "none")


def test_cores_are_pinned_node_by_node() -> None:
    nodes = [[0, 1, 2], [3, 4, 5]]
    assert (0, 1, 2, 3) == plan_layout(4, nodes, range(6)).places
    assert "pinned along 2 NUMA nodes, the driver on the others" == plan_layout(4, nodes, range(6)).reason
    assert (1, 2, 3) == plan_layout(3, nodes, [1, 2, 3, 4]).places


def test_cores_are_not_pinned_where_it_would_not_help() -> None:
    assert (None, None) == plan_layout(2, [[0, 1, 2, 3]], range(4)).places
    assert (None,) * 4 == plan_layout(4, [[0, 1], [2, 3]], range(4)).places
    assert "4 cores would leave none of 4 to the driver" in plan_layout(4, [[0, 1], [2, 3]], range(4)).reason
    assert 2 == len(layout(2).places)


def test_a_thread_stays_on_its_cpu() -> None:
    before = os.sched_getaffinity(0)
    try:
        pin(min(before))
        assert {min(before)} == os.sched_getaffinity(0)
    finally:
        os.sched_setaffinity(0, before)
    pin(None)
    assert before == os.sched_getaffinity(0)
