"""`repros new` and `repros check`: write the script of a new repro, and check it before a pull request."""
