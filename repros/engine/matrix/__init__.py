"""The matrix: the catalogue over all stacks, measured where fresh evidence is missing and checked where it exists."""
