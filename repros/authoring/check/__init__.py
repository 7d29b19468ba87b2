"""`repros check`: rules, runs, golden log and range of a new script, and the steps of its project."""
