"""CUDA without a GPU: PyTorch's own CUDA code runs, over a CUDA runtime whose kernels do nothing.

A CUDA build of PyTorch holds all that decides where tensors lie, what is refused and in which words, and which types
and strides come out: host code, which asks the CUDA runtime (`libcudart`) for memory, streams and kernels.
What is compiled from here answers in its place: memory is the host's, copies are made, a kernel's launch succeeds and
computes nothing. So the devices are *hollow*: what PyTorch decides can be seen on them, what a kernel computes cannot,
and they are no evidence of what a GPU does when a kernel runs.
"""
