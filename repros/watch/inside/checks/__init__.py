"""The checks: one family in each file, whose docstring says when it speaks and when it keeps silent."""
