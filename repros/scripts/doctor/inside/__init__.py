"""The script that `repros doctor` runs in the sandbox."""
