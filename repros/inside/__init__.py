"""The code that runs in the environment under test: it uses the standard library and torch only.

The engine puts `site/` on the path of every process of a cell; its `sitecustomize` loads this project's package from
where it lies, so nothing has to be installed there.
"""
