"""Search for the first and the last release of a package that has a failure: `repros bisect`."""
