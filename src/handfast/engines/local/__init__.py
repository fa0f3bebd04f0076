"""The join in this process."""
