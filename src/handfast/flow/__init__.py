"""What moves: batches of tuples, their times, watermarks."""
