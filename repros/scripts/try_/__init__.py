"""An untrusted script on chosen stacks: `repros try`.

The steps: `script` reads a script, `issue` the code block of an issue, `command` a command line; `needs` finds the
packages that it imports; `task` is all of it with its limits. `job` makes a job of the engine of it, in the sandbox of
`sandbox` and, with several ranks, started by `inside/ranks.py`; the engine runs it. `outcome` classifies the
observation, `known` compares it with the catalogue. `run` does this stack by stack; `text` and `json_format` present
it.
"""
