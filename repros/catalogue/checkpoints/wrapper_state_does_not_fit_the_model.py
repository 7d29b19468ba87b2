# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0178"
# title = "A state saved from DDP or DataParallel has another prefix than the plain model's keys"
# kind = "by design"
# documented = "https://github.com/pytorch/pytorch/issues/3805"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/3805",
#     "https://github.com/pytorch/pytorch/issues/41048",
#     "https://github.com/menzelab/implicit-shape-reconstruction/issues/2",
#     "https://github.com/mks0601/3DMPPE_POSENET_RELEASE/issues/41",
#     "https://github.com/nerfstudio-project/nerfstudio/issues/1636",
#     "https://github.com/nerfstudio-project/nerfstudio/issues/746",
#     "https://github.com/pfnet/pfrl/pull/55",
#     "https://github.com/samuelschen/DSB2018/issues/2",
#     "https://github.com/whai362/pan_pp.pytorch/issues/14",
# ]
# upstream.related = [
#     "https://github.com/pytorch/pytorch/pull/53224",
#     "https://github.com/nerfstudio-project/nerfstudio/pull/1682",
# ]
# packages = ["torch"]
# home = "2023-12"
#
# [tool.repro.variants.failing]
# about = "load what a DistributedDataParallel model has saved into the plain model"
# raises = "RuntimeError"
# match = 'Unexpected key(s) in state_dict: "module.'
#
# [tool.repro.variants.fixed]
# about = "save ddp.module.state_dict()"
# source = "https://github.com/whai362/pan_pp.pytorch/issues/14"
#
# [tool.repro.variants.prefix_consumed]
# outcome = "passes"
# about = "consume_prefix_in_state_dict_if_present(state, \"module.\")"
# source = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
#
# [tool.repro.variants.wrapped_first]
# outcome = "passes"
# about = "wrap the model, then load"
# source = "https://github.com/pytorch/pytorch/issues/3805"
#
# [tool.repro.variants.not_strict]
# outcome = "fails"
# about = "load_state_dict(state, strict=False) loads nothing"
# raises = "AssertionError"
# match = "expected the loaded weight 5.0, got 1.0"
# claim = "strict=False loads a state whose keys have the prefix"
# source = "https://github.com/nayeemrizve/OpenLDN/issues/5"
#
# [tool.repro.variants.data_parallel]
# outcome = "fails"
# about = "the same with DataParallel"
#
# [tool.repro.variants.plain_into_wrapper]
# outcome = "fails"
# about = "the other way round: load what the plain model has saved into the wrapped one"
# raises = "RuntimeError"
# match = 'Missing key(s) in state_dict: "module.'
# ///
"""What was trained on several GPUs cannot be loaded for evaluation on one, or the other way round.

Symptom: `RuntimeError: Error(s) in loading state_dict for ...: Missing key(s) in state_dict: "weight". Unexpected
key(s) in state_dict: "module.weight"`. Every missing key is there among the unexpected ones, behind `module.`

Cause: a wrapper is a module that has the model as its child `module`, and `state_dict` names each parameter by its path
of children. PyTorch decided against an exception for its wrappers.

Fix: save `ddp.module.state_dict()`, so that the file does not depend on the number of GPUs, or take the prefix off.

Apart: with strict=False the load succeeds and changes nothing (RPR-0057). If the keys differ behind the prefix too, or
both lists have it, the file is of another model.
"""

import sys

from torch import distributed, nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from torch.nn.parallel import DataParallel, DistributedDataParallel


def failing(ddp, model):
    model.load_state_dict(ddp.state_dict())


def fixed(ddp, model):
    model.load_state_dict(ddp.module.state_dict())


def prefix_consumed(ddp, model):
    state = ddp.state_dict()
    consume_prefix_in_state_dict_if_present(state, "module.")
    model.load_state_dict(state)


def wrapped_first(ddp, model):
    DistributedDataParallel(model).load_state_dict(ddp.state_dict())


def not_strict(ddp, model):
    model.load_state_dict(ddp.state_dict(), strict=False)


def data_parallel(ddp, model):
    model.load_state_dict(DataParallel(ddp.module).state_dict())


def plain_into_wrapper(ddp, model):
    DistributedDataParallel(model).load_state_dict(ddp.module.state_dict())


VARIANTS = {
    v.__name__: v
    for v in (failing, fixed, prefix_consumed, wrapped_first, not_strict, data_parallel, plain_into_wrapper)
}


def make(value):
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, value)
    return model


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)  # names are the same
    model = make(1.0)
    VARIANTS[variant](DistributedDataParallel(make(5.0)), model)
    got = model.weight.item()
    assert got == 5.0, f"expected the loaded weight 5.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
