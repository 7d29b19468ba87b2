"""Advice about documented failures: `repros audit` (versions), `repros report` (upstream issues), `repros export`."""
