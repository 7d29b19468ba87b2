// In the place of PyTorch's header of this name, which declares how classes and operators are registered. c10d's
// headers include it for torch::CustomClassHolder, which is declared below it.
//
// The include path has this folder before PyTorch's (build.py).
#pragma once

#include <ATen/core/ivalue.h>
