"""Generators of the tables in the documentation."""
