"""Routings, a file each: when one is chosen, where a tuple goes, what a core keeps, who emits a match, its words."""
