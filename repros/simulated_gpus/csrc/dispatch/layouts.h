// Sparse tensors (COO) and nested tensors, made over the components of a tensor of the other backend.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/FunctionRef.h>

namespace sim::layouts {

bool is_sparse(const at::Tensor& tensor);
// Whether a tensor is nested with the strided layout; the jagged layout is a class in Python.
bool is_nested(const at::Tensor& tensor);

using ToPart = c10::function_ref<at::Tensor(const at::Tensor&)>;
using ToStorage = c10::function_ref<c10::Storage(const c10::Storage&)>;

// Return the same tensor for the other backend: over the indices and values, or the storage, that the function returns.
at::Tensor sparse_over(const at::Tensor& tensor, ToPart part);
at::Tensor nested_over(const at::Tensor& tensor, ToStorage storage);
// Copies the components of a sparse tensor of the other backend, as references.
void set_sparse(const at::Tensor& to, const at::Tensor& from, ToPart part);

}  // namespace sim::layouts

namespace sim {

using layouts::is_nested, layouts::is_sparse, layouts::nested_over, layouts::set_sparse, layouts::sparse_over,
    layouts::ToPart, layouts::ToStorage;

}  // namespace sim
