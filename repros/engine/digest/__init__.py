"""Digests of what a verdict depends on: a cell is measured again only when one of them changes.

They see code, not prose: comments, docstrings, layout, file names and the places of modules do not count
(:mod:`repros.engine.digest.sources`), and neither do the keys of a script's header that no verdict depends on
(:mod:`repros.engine.header.keys`). The machine is not part of them.
"""
