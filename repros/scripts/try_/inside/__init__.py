"""Programs around a script: the sandbox, the launcher of its ranks, and the server that forks candidates."""
