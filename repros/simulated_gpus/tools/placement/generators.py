"""Generators: the random operators check that a generator's device type is the tensor's."""

from __future__ import annotations

from .line import (
    GENERATED,
    GENERATOR,
    ITERATOR,
    PYTHON,
    Line,
    codegen,
    error,
    iterator,
    on,
    one_error_of,
)

PROBABILITIES = (
    "bernoulli_kernel in aten/src/ATen/native/cpu and cuda/DistributionTemplates.h copies probabilities to the device"
)
RANDPERM = (
    "ATen/core/dispatch/DispatchKeyExtractor.h: a generator selects the kernel too; and "
    "aten/src/ATen/native/cuda/Randperm.cu draws its keys by random_"
)
APPLY = "aten/src/ATen/cuda/CUDAApplyUtils.cuh: the generator selects CUDA's kernel, which gets CPU tensors"
OF_THE_CPU = error("Expected a 'D' device type for generator but found 'cpu'")
OF_THE_DEVICE = error("Expected a 'cpu' device type for generator but found 'D'")

LINES = [
    Line("randperm_right", "torch.randperm(4, generator=g, device=d)", on("D:0"), GENERATOR),
    Line("randperm_cpu_generator", "torch.randperm(4, generator=cg, device=d)", OF_THE_CPU, GENERATOR),
    Line("randperm_device_generator", "torch.randperm(4, generator=g)", OF_THE_DEVICE, RANDPERM),
    Line("rand_cpu_generator", "torch.rand(3, generator=cg, device=d)", OF_THE_CPU, GENERATOR),
    Line("rand_device_generator", "torch.rand(3, generator=g)", OF_THE_DEVICE, GENERATOR),
    Line("randn_cpu_generator", "torch.randn(3, generator=cg, device=d)", OF_THE_CPU, GENERATOR),
    Line("randn_device_generator", "torch.randn(3, generator=g)", OF_THE_DEVICE, GENERATOR),
    Line("randint_cpu_generator", "torch.randint(3, (3,), generator=cg, device=d)", OF_THE_CPU, GENERATOR),
    Line("randint_device_generator", "torch.randint(3, (3,), generator=g)", OF_THE_DEVICE, GENERATOR),
    Line("normal_inplace", "x.normal_(generator=cg)", OF_THE_CPU, GENERATOR),
    Line("normal_inplace_on_cpu", "cx.normal_(generator=g)", OF_THE_DEVICE, GENERATOR),
    Line("normal_by_other_device", "x.normal_(generator=g1)", on("D:0"), GENERATOR),
    Line("normal_mean", "torch.normal(x, x, generator=cg)", OF_THE_CPU, GENERATOR),
    Line("uniform_inplace", "x.uniform_(generator=cg)", OF_THE_CPU, GENERATOR),
    Line("uniform_inplace_on_cpu", "cx.uniform_(generator=g)", OF_THE_DEVICE, GENERATOR),
    Line("bernoulli", "torch.bernoulli(x, generator=cg)", OF_THE_CPU, GENERATOR),
    Line("bernoulli_on_cpu", "torch.bernoulli(cx, generator=g)", OF_THE_DEVICE, GENERATOR),
    Line("bernoulli_inplace", "x.bernoulli_(0.5, generator=cg)", OF_THE_CPU, GENERATOR),
    Line("exponential", "x.exponential_(generator=cg)", OF_THE_CPU, GENERATOR),
    Line("exponential_on_cpu", "cx.exponential_(generator=g)", OF_THE_DEVICE, GENERATOR),
    Line("multinomial", "torch.multinomial(x, 2, generator=cg)", OF_THE_CPU, GENERATOR),
    Line("multinomial_on_cpu", "torch.multinomial(cx, 2, generator=g)", OF_THE_DEVICE, GENERATOR),
    Line("randperm_by_default_device", "on_device(d, lambda: torch.randperm(4, generator=torch.Generator('cpu')))",
         OF_THE_CPU, GENERATOR),
    Line("sampler_by_default_device", "on_device(d, lambda: list(torch.utils.data.RandomSampler(range(3))))",
         OF_THE_CPU, PYTHON),
    Line("loader_by_default_device",
         "on_device(d, lambda: list(torch.utils.data.DataLoader(range(4), shuffle=True)))", OF_THE_CPU, PYTHON),
    Line("tensor_by_default_device", "on_device(d, lambda: torch.tensor([1.0]))", on("D:0"), PYTHON),
    Line("rand_out", "torch.rand(3, out=torch.empty(3, device=d), generator=cg)", OF_THE_CPU, GENERATOR),
    Line("rand_out_on_cpu", "torch.rand(3, out=torch.empty(3), generator=g)", OF_THE_DEVICE, GENERATOR),
    Line("rand_by_other_device", "torch.rand(3, generator=g1, device=d)", on("D:0"), GENERATOR),
    Line("random_inplace", "x.random_(generator=cg)", OF_THE_CPU, GENERATOR),
    Line("random_inplace_on_cpu", "cx.random_(generator=g)", OF_THE_DEVICE, GENERATOR),
    Line("cauchy", "x.cauchy_(generator=cg)", OF_THE_CPU, GENERATOR),
    Line("log_normal", "x.log_normal_(generator=cg)", OF_THE_CPU, GENERATOR),
    Line("geometric", "x.geometric_(0.5, generator=cg)", OF_THE_CPU, GENERATOR),
    Line("geometric_on_cpu", "cx.geometric_(0.5, generator=g)", OF_THE_DEVICE, GENERATOR),
    Line("poisson", "torch.poisson(x, generator=cg)", OF_THE_CPU, GENERATOR),
    Line("poisson_on_cpu", "torch.poisson(cx, generator=g)",
         one_error_of("Expected a 'cpu' device type for generator but found 'D'",
                "CUDA_tensor_apply2: Expected tensors to have CUDA DeviceType", more=".*"), APPLY),
    Line("initialise", "nn.init.normal_(x, generator=cg)", OF_THE_CPU, PYTHON, (2, 2)),
    Line("normal_deviation_on_cpu", "torch.normal(x, cx)", codegen("D:0", "cpu", "std", "normal"), GENERATED),
    Line("bernoulli_probabilities_on_cpu", "x.bernoulli_(cx)", on("D:0"), PROBABILITIES),
    Line("cpu_bernoulli_probabilities_on_device", "cx.bernoulli_(x)", on("cpu"), PROBABILITIES),
    Line("bernoulli_out", "torch.bernoulli(x, out=torch.empty(3))", on("cpu"), PROBABILITIES),
    Line("binomial", "torch.binomial(x, cx)", iterator(), ITERATOR),
    Line("multinomial_out", "torch.multinomial(x, 2, out=torch.empty(2, dtype=torch.long))",
         codegen("cpu", "D:0", "self", "multinomial"), GENERATED),
]  # fmt: skip
