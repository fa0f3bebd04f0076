"""One join on all engines, side by side: `handfast bench engines`."""
