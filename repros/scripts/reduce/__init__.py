"""Reduction of a failing script that preserves its failure: `repros reduce`.

The steps: `candidates` runs scripts as `repros try` does; `interestingness` finds the failure of the original
(`failure`) and tests candidates for it; `search` tries candidates that reduction passes propose (`passes`, on `code`,
a parsed source): without statements (`statements`), block headers (`blocks`), arguments or wrapping calls
(`expressions`), with constants and command-line arguments inlined (`inlining`), with smaller numbers. A
candidate that is not valid Python or uses undefined names (`names`) is rejected before any run. `layout` formats the
result.

Other reducers of Python do not fit. shrinkray needs Python 3.12 and some thirty packages, and picire and lithium
cut text; pysource-minimize replaces expressions by 0 and renames variables, which suits bugs of parsers: a script that
fails in a library then fails for another reason, or becomes meaningless to its reader.
"""
