// In the place of PyTorch's header of this name, which declares every operator, as a class and as a function, and takes
// longer to parse than all of this project's code. c10d's headers include it for the three operators below.
//
// The include path has this folder before PyTorch's (build.py).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
