"""An interpreter with torch that is imported once: a program that takes the place of `python` for many short scripts.

`server.py` runs in the environment with torch and forks a process for each script. `client.py` is what a test starts in
the place of that environment's Python: it hands its arguments, variables, folder and streams to the server, and ends as
the script ends. The process that runs the script has nothing from the server but the imported torch; the hook's
`sitecustomize` is run in it, if it is on its PYTHONPATH. What concerns the start of a process, its signals, or ranks
that are started as commands needs the real interpreter.
"""
