"""Repros for use without this project: `repros export` writes a pinned script or an OSV record."""
