"""The catalogue over all stacks: what is known of each from measurement, and what has to be measured again."""
