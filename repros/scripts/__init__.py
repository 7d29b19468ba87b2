"""Commands that run the script of a user or of a bug report: `repros try`, `repros reduce`, `repros bisect`."""
