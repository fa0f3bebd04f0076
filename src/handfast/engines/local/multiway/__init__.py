"""Joins of three and more streams: probing in turn, Circular-MJ and Stashed-MJ [CMJ], and the choice between them."""
