"""The sandbox of a script and the server that forks candidates: code in the environment under test."""
