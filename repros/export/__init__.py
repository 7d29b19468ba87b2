"""A repro for use without this project: a script that stands alone, or an OSV record."""
