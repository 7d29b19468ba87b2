"""On which release of a package a script or a command changes its signature: `repros bisect SCRIPT`.

The steps: `question` chooses the candidates, `examine` runs the program on one release as `repros try` does and says
what it shows, by the `marks` that the user looks for in its output or by how it ended; `bisection` finds the two
releases to compare and searches between them, both with the search of :mod:`repros.scripts.bisect`. `text` and
`json_format`
present it.
"""
