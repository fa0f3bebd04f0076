"""What is right: the definition executed naively, and engines compared with it."""
