"""Since when, until when: a failure's first and last release, found by running it on some of them."""
