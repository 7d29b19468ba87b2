"""The CUDA stub: PyTorch's own CUDA code without a GPU, over a CUDA runtime whose kernels do nothing.

In a CUDA build of PyTorch, host code decides where tensors are, which calls are refused with which message, and which
types and strides results have. That code asks the CUDA runtime (`libcudart`) for memory, streams and kernels.
The stub replaces the runtime: memory is the host's, copies are made, a kernel's launch succeeds and computes nothing.
So it shows PyTorch's decisions, but not a kernel's results, and it is not evidence of what a GPU does in a kernel.
"""
