"""The engines: each feeds JoinCores and keeps their blocks."""
