"""The handshake chain in machine code: rings without locks, cores that work without Python, a driver, a collector."""
