"""Commands on the script or the report of a user: `repros triage`, `repros try`, `repros reduce`, `repros bisect`."""
