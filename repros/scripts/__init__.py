"""Commands that run the script or the report of a user: `repros triage`, `repros try`, `repros reduce`, `repros bisect`."""
