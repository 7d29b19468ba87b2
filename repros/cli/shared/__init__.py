"""Options, output and signals that several commands share."""
