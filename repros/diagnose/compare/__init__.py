"""`repros compare`: two runs of a training, unchanged, and the first step and place at which they differ.

The processes of both programs record their steps, evaluations and ends (:mod:`repros.diagnose.compare.inside`).
`recording`
runs a program and reads what it recorded, in its order; `layout` joins ranks and accumulated passes of a step, `ends`
pairs the last states; `tolerance` says how far numbers may lie apart by rounding; `batches` and `differ` compare two
steps in the order of causes; `run` is all of it, with `notes`. `text` and `json_format` present the result.
"""
