"""The join: one resumable JoinCore: blocks in, matches out, state as blocks."""
