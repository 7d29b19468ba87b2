"""The element types of CUDA's kernels, observed of CUDA's own code.

`observe` calls every entry of PyTorch's `op_db` on the CUDA stub, with samples of each type, and records which ATen
operator ran or was refused in which words, and which types that the list denies CUDA it takes. `header` makes of the
records the table of `csrc/dispatch/kernel_types.h`. `ask` is the conformance's worker for types.
"""
