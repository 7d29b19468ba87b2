"""Digests of what a verdict depends on: as long as they stay the same, a cell need not be measured again.

They see code, not prose: comments, docstrings, layout, file names and the places of modules do not count
(:mod:`repros.engine.digest.sources`), nor do the keys of a script's header that no verdict depends on
(:mod:`repros.engine.header.keys`). The machine is not part of them.
"""
