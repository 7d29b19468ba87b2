"""`repros new`: write the script of a new repro from a template, filled from an issue form if there is one."""
