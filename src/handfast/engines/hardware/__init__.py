"""The join as a circuit, written in Amaranth."""
