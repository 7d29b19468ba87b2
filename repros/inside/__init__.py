"""What runs in the environment under test: standard library and torch only.

The engine puts `site/` on the path of every process of a cell; its `sitecustomize` loads this folder under the name
`repros_inside`, so nothing has to be installed there. In an environment that has this project it is `repros.inside`.
"""
