"""What is asked: immutable values, no data, no engine."""
