"""Indexes: which stored tuples can be a new one's partners."""
