"""Every Java that the tests start, in this process or another, starts lightly."""

from __future__ import annotations

import subprocess

import pytest


@pytest.mark.spark
def test_a_java_of_the_tests_compiles_quickly() -> None:
    command = ["java", "-XX:+PrintFlagsFinal", "-version"]
    flags = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    values = {words[1]: words[3] for words in map(str.split, flags) if len(words) > 3}
    assert ("1", "true") == (values["TieredStopAtLevel"], values["UseSerialGC"])
