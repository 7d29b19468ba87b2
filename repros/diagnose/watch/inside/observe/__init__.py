"""The observations: each is made once, by a public hook where there is one, else by a narrow patch."""
