"""The evaluation of Circular-MJ and Stashed-MJ again: `handfast reproduce circular`."""
