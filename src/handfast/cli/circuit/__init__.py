"""A pipeline's join as a circuit: `handfast simulate` and `handfast synthesize`."""
