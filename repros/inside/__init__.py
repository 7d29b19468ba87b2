"""The code that runs in the environment under test: it uses the standard library and torch only.

The engine puts `site/` on the path of every process of a cell; its `sitecustomize` loads this folder under the name
`repros_inside`, so nothing has to be installed there. Where this project is installed it is also `repros.inside`.
"""
