"""A failing script made smaller while its failure stays: `repros reduce`.

The steps: `oracle` runs the script as `repros try` does and reads from that what must stay (`failure`); `search` tries
smaller scripts, which the passes propose (`passes`, on `code`, a parsed source): statements left out (`statements`),
blocks without their header (`blocks`), arguments and wrapping calls left out (`expressions`), constants and the command
line's arguments written where they are used (`inlining`), smaller numbers (`numbers`). A candidate that is no Python,
or uses what it defines no longer (`names`), is refused before any run. `layout` writes the result down.

Other reducers of Python do not fit. shrinkray needs Python 3.12 and some thirty packages, and picire and lithium
cut text; pysource-minimize puts 0 in the place of expressions and renames variables, which suits bugs of parsers: a
script that fails in a library then fails for another reason, or tells its reader nothing.
"""
