"""`repros check`: the rules for a new script, its runs, and the log that `repros match` has to recognise."""
