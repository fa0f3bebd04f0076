"""A grid of circuits on the fast model: `handfast sweep`."""
