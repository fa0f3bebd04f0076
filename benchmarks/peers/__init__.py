"""The same join written for other stream engines, a program for each, to be run where that engine is installed."""
