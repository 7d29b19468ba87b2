"""Recording what a real GPU does, for evidence and for the comparison with the simulated accelerator."""
