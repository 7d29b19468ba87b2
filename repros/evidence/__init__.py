"""What was measured, as it lies in the repository: a file for each stack and repro."""
