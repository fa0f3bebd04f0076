"""Where streams come from and where matches go; seeded workloads to try a join on."""
