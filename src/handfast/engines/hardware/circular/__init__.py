"""Circular-MJ as a circuit: a ring of stages, one for each stream, that joins three and more streams [CMJ §II]."""
