"""`repros compare`: two runs of a training, unchanged, and the first step and place at which they differ.

The processes of both programs record their steps (:mod:`repros.watch.inside.record`). `recording` runs a program and
reads what it recorded, step by step; `layout` joins ranks and accumulated passes of a step; `tolerance` says how far
numbers may lie apart by rounding; `batches` and `differ` compare two steps in the order of causes; `run` is all of it.
`text` and `json_format` present the result.
"""
