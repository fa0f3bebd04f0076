#!/usr/bin/env bash
# Install the stream engines that benchmarks/streaming_peers.py compares with, each in an environment of its own: their
# packages do not go together. Does nothing for those that are there.
set -euo pipefail
cd "$(dirname "$0")/.."

for package in pathway==0.33.0 bytewax==0.21.1 apache-flink==2.3.0; do
    home=.venv-peers/${package%%==*}
    if [ -e "$home/installed" ]; then continue; fi
    printf 'peers: installing %s into %s\n' "$package" "$home"
    rm -rf "$home"
    "${PYTHON:-python3}" -m venv "$home"
    "$home/bin/pip" install -q --disable-pip-version-check "$package" numpy
    touch "$home/installed"
done
