"""What `repros reduce` runs in the environment under test: standard library only."""
