"""The observations: each is made once, by a public hook where one exists, else by a narrow patch."""
