// Tensors that are made of others: sparse ones (in coordinate form) and nested ones, over the parts of another.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/FunctionRef.h>

namespace sim::layouts {

bool is_sparse(const at::Tensor& tensor);
// Of the strided layout, which PyTorch's own C++ knows; a jagged one is a class in Python.
bool is_nested(const at::Tensor& tensor);

using ToPart = c10::function_ref<at::Tensor(const at::Tensor&)>;
using ToStorage = c10::function_ref<c10::Storage(const c10::Storage&)>;

// The same tensor for the other backend, whose indices and values `part` returns; whose storage `storage` returns.
at::Tensor sparse_over(const at::Tensor& tensor, ToPart part);
at::Tensor nested_over(const at::Tensor& tensor, ToStorage storage);
// Gives a sparse tensor what another of the other backend has.
void set_sparse(const at::Tensor& to, const at::Tensor& from, ToPart part);

}  // namespace sim::layouts

namespace sim {

using layouts::is_nested, layouts::is_sparse, layouts::nested_over, layouts::set_sparse, layouts::sparse_over,
    layouts::ToPart, layouts::ToStorage;

}  // namespace sim
