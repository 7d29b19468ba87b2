"""What `repros watch` runs inside a training program: observations, and the checks that listen to them.

`arm.install` is called by `site/sitecustomize.py` in every process of the program, and by `repros.watch.watching` in
a program that has the project. Each file of `observe/` makes one kind of observation, once, and tells it to all checks
by :meth:`watch.Watch.tell`; each file of `checks/` is one family of checks, whose docstring is its contract: when it
speaks, when it keeps silent and why, what it costs.

Processes write to a file of their own and never to each other: what has to be compared between ranks is a digest of a
few numbers, and the process outside compares. So nothing here waits for another rank. No evidence of the engine
depends on this folder.
"""
