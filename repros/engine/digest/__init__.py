"""Digests of the inputs of verdicts: a cell is measured again only when one of them changes.

They cover code, not prose: comments, docstrings, layout, file names and the locations of modules do not count
(:mod:`repros.engine.digest.sources`), nor do header keys that no verdict depends on
(:mod:`repros.engine.header.keys`). The machine is not an input.
"""
