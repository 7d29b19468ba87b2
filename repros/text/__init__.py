"""Pure functions that format repros, results and record lines as text and JSON."""
