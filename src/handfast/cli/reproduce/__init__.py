"""The evaluation of the thesis again: `handfast reproduce thesis`."""
