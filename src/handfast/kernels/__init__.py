"""The innermost loops: arrays in, arrays out."""
