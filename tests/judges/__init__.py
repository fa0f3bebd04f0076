"""The judges of every result beside the oracle, and rows as all of them see them."""
