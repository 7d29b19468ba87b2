"""What to do about a known failure: `repros audit` (versions), `repros report` (upstream issues), `repros export`."""
