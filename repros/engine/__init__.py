"""Everything between a repro script and its verdict."""
