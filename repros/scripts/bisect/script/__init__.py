"""The release of a package on which a script or a command changes its behaviour: `repros bisect SCRIPT`.

The steps: `question` chooses the candidates; `examine` runs the program on one release as `repros try` does and labels
the runs by the `patterns` in their output or by how they ended; `bisection` finds the two releases to compare and
searches between them, both with the search of :mod:`repros.scripts.bisect`. `text` and `json_format` present it.
"""
