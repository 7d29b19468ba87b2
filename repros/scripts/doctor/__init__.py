"""What a script in the sandbox of `repros try` can reach on this machine: `repros doctor`.

`targets` makes harmless things outside the sandbox, `inside/attempts.py` is the script that reaches for each of them,
and `examination` runs it as `repros try` runs a script and reads what it could do.
"""
