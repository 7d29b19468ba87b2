// Registration of the kernels in this folder, by file; registrations.cpp calls them.
#pragma once

#include "registrar.h"

namespace sim::convolution {
void register_kernels(Registrar& registrar);
}  // namespace sim::convolution

namespace sim::ctc_loss {
void register_kernels(Registrar& registrar);
}  // namespace sim::ctc_loss

namespace sim::cudnn_layers {
void register_kernels(Registrar& registrar);
}  // namespace sim::cudnn_layers

namespace sim::cudnn_rnn {
void register_kernels(Registrar& registrar);
}  // namespace sim::cudnn_rnn

namespace sim::fast_path {
void register_kernels(Registrar& registrar);
}  // namespace sim::fast_path

namespace sim::fused {
void register_kernels(Registrar& registrar);
}  // namespace sim::fused

namespace sim::gpu_only {
void register_kernels(Registrar& registrar);
void register_autograd_kernels(Registrar& registrar);
}  // namespace sim::gpu_only

namespace sim::hardcoded_device_types {
void register_kernels(Registrar& registrar);
void register_autograd_kernels(Registrar& registrar);
}  // namespace sim::hardcoded_device_types

namespace sim::minimal {
void register_kernels(Registrar& registrar);
void register_lazy_kernels(Registrar& registrar);
}  // namespace sim::minimal

namespace sim::random {
void register_kernels(Registrar& registrar);
}  // namespace sim::random

namespace sim::random_dropout {
void register_kernels(Registrar& registrar);
}  // namespace sim::random_dropout

namespace sim::random_permutation {
void register_kernels(Registrar& registrar);
}  // namespace sim::random_permutation

namespace sim::random_sampling {
void register_kernels(Registrar& registrar);
}  // namespace sim::random_sampling

namespace sim::recurrent {
void register_kernels(Registrar& registrar);
}  // namespace sim::recurrent

namespace sim::scaler {
void register_kernels(Registrar& registrar);
}  // namespace sim::scaler

namespace sim::sdp_choice {
void register_kernels(Registrar& registrar);
}  // namespace sim::sdp_choice

namespace sim::sdp_kernels {
void register_kernels(Registrar& registrar);
}  // namespace sim::sdp_kernels

namespace sim::sync_batch_norm {
void register_kernels(Registrar& registrar);
}  // namespace sim::sync_batch_norm
