"""Public reports that a reader drew without knowing the catalogue, and how many of them have an id."""
