"""`repros new`: a script for a new failure, from a template or from a filled-in issue form."""
