"""Presenters: results and record lines to text for people; each is a pure function in a file of its own."""
