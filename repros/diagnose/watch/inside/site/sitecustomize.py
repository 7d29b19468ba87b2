"""The first file that Python runs in a watched program: it passes on to the hook, or runs on without it.

Python older than 3.9 cannot load the hook, and a program may start such a Python for a helper: this file is valid in
Python 2.7, too. The process outside learns of it from a file; the process itself prints nothing.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_HOOK = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))), "inside", "site")

_later = sys.path[sys.path.index(_HERE) + 1 :] if _HERE in sys.path else []
# The hook looks for the file that it shadows, and must not find this one again.
sys.path[:] = [folder for folder in sys.path if folder != _HERE]
if sys.version_info < (3, 9):
    sys.path[:] = [folder for folder in sys.path if folder != _HOOK]
    _later = [folder for folder in _later if folder != _HOOK]
    try:
        open(os.path.join(os.environ["REPROS_WATCH"], str(os.getpid()) + ".old"), "w").close()
    except Exception:
        pass

_next = [path for path in (os.path.join(folder, "sitecustomize.py") for folder in _later) if os.path.isfile(path)]
if _next:
    with open(_next[0], "rb") as _file:
        _code = compile(_file.read(), _next[0], "exec", dont_inherit=True)
    exec(_code, {"__name__": "sitecustomize", "__file__": _next[0]})  # noqa: S102 - Python would have run this file
