"""Proofs: harnesses in which parts of the circuit do what they claim, whatever happens around them."""
