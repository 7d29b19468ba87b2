"""`repros report`: a block for an upstream issue, from real runs, with private facts removed."""
