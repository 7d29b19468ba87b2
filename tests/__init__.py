"""A package, to come before a `tests` that a library put into the environment under test (bitsandbytes 0.44 does)."""
