"""A pipeline at work: `handfast run`, `explain` and `verify`."""
