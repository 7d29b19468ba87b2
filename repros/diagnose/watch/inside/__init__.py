"""The code of `repros watch` in a training program: observations, and the checks that subscribe to them.

`repros/inside/site/sitecustomize.py`, to which `site/sitecustomize.py` passes on, calls `install.install` in every
process of the program, and `repros.diagnose.watch.watching` calls `install.begin` in a program that has this project
installed. Each file of `observe/` makes one kind of observation, once, and passes it to all checks by
:meth:`watch.Watch.notify`. Each file in the folders of `checks/` is a family of checks, whose docstring is its
contract: what it reports and why, what it misses and what it costs.

Processes write to a file of their own and never to each other: what has to be compared between ranks is a digest of a
few numbers, and the process outside compares. So nothing here waits for another rank. No evidence of the engine depends
on this folder.
"""
