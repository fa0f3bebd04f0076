"""Indexes: each proposes stored tuples that may be partners of new ones."""
