"""One file per question; `python -m benchmarks.<file>` answers it and writes what it measured to `results`."""
