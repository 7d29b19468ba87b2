"""The Markdown block of `repros report` for an upstream issue, built from record lines, with private data redacted."""
