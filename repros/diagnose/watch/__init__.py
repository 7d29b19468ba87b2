"""`repros watch`: run a training program unchanged, and say when a documented failure happens in it.

The program's processes observe themselves (:mod:`repros.diagnose.watch.inside`) and write events into a folder.
`session` starts the program and reads the folder while it runs, `compare` compares the digests of its ranks,
`identify` names the repros that a finding may be, `crash` those that an exception may be. `text` and `json_format`
present them.
"""
