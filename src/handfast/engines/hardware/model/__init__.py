"""Fast models of the circuits, equal to them cycle by cycle: arrays and compiled loops."""
