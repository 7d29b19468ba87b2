"""Generators of documentation: Markdown tables made from the headers and the evidence."""
