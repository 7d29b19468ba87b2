"""A stranger's script on chosen stacks: `repros try`.

The steps: `script` copies the script, or `issue` the code block of an issue, `needs` reads which packages it imports,
`cell` makes a cell of the engine's model of it, whose documented failure is a hang, so that the engine looks for one;
`start` starts it within the walls of `confine`, and its ranks by `ranks`; the engine supervises, judges and ends it;
`sight` reads from the result what was seen, `known` compares that with the catalogue. `run` is all of it, stack by
stack. `text` and `json_format` present it.
"""
