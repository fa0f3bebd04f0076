"""Stashed-MJ as a circuit: a line of stages whose first keeps the matching pairs of two streams [CMJ §III]."""
