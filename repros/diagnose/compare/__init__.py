"""`repros compare`: find the first step and tensor at which two runs of an unmodified training diverge.

The processes of both programs record their steps, evaluations and final states
(:mod:`repros.diagnose.compare.inside`). `recording` runs a program and reads its recording in order; `layout` joins the
ranks and accumulated passes of a step; `tolerance` computes the rounding differences to expect and `tolerance_check`
applies them; `batches` and `differ` compare two steps, or final states, in the order of causes; `run` compares two
recordings up to the first `difference`, with notes such as the `ratio` of all gradients, and `rerun` repeats a run
whose ranks have a fixed batch. `text` and `json_format` present the result.
"""
