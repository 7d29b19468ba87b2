"""Text for the terminal, made from repros, results and record lines by pure functions."""
