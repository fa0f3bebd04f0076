"""Benchmarks that a user can run: `handfast bench`."""
