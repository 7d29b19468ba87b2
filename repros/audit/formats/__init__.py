"""How an audit is shown: a file per format, each a pure function."""
