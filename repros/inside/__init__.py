"""Code that runs in the environment under test; it imports the standard library and torch only.

The engine adds `site/` to `PYTHONPATH` of every process of a job. Its `sitecustomize` loads this package from its
source folder, so nothing has to be installed in that environment.
"""
