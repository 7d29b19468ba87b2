"""`repros new`: a script for a new failure, from a template, an issue form or a failing script."""
