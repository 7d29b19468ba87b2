"""The checks, in folders by the library that they concern; a file is a family and has the name of its main check.

`torch_nn` has the checks of `torch.nn`, `torch_optim` those of `torch.optim`, and so on. A family's docstring is its
contract, from which the documentation is generated: what it does, why the finding matters, an example, what it misses
and what it costs. Its `CHECKS` declares the names that its findings may have. The process outside reads the
declarations as well (`repros/diagnose/watch/names.py`), so no module of this folder imports a framework at its top.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Protocol, cast

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.watch import Watch

FAMILIES = {
    "torch_distributed": (
        *("gradients_differ", "gradients_changed_apart", "precision_differs", "share_repeated", "ranks_fed_alike"),
        *("ranks_begin_apart", "collective_device", "ranks_wait_apart"),
    ),
    "torch_nn": (
        *("weight_unconnected", "layer_cut_off", "eval_mode", "evaluated_in_train_mode", "train_not_called"),
        *(
            "labels_shifted_twice",
            "loss_broadcast",
            "nothing_loaded",
            "kept_weights_changed",
            "average_not_updated",
            "average_rounded_away",
            "copy_runs_original",
        ),
    ),
    "torch_optim": (
        *("steps_without_gradients", "weights_not_finite", "gradients_not_zeroed", "clipped_too_late"),
        *("optimizer_remade", "state_strides", "rate_reset", "schedule_not_stepped"),
        *("schedule_moved_often", "clipped_nothing", "loss_divided_by_ranks"),
        *("group_options_mixed", "saved_in_train_mode"),
    ),
    "torch_amp": ("scaler_skips_steps",),
    "torch_data": ("epoch_not_set", "order_repeated", "stream_begun_twice", "validation_cut", "resumed_without_epoch"),
    "numerics": ("nan_output",),
    "lightning": ("fit_without_steps", "rate_not_set", "saved_later_weights", "score_logged_as_mean"),
    "accelerate": (
        *("clipped_while_accumulating", "gathered_after_the_loop", "state_loaded_before_prepare"),
        *("inputs_on_other_device", "plugin_ignored"),
    ),
    "transformers": ("end_of_text_not_learned", "second_bos", "warmup_ignored", "new_rate_ignored"),
    "peft": ("adapter_frozen", "adapter_not_loaded", "merge_changes_shared_weight", "new_tokens_frozen"),
    "trl": ("reference_without_adapter",),
    "datasets": ("epoch_set_on_parent", "split_overlaps"),
}
"""The modules of each folder, in the order of the documentation."""


class CheckFamily(Protocol):
    """A module of this folder's folders."""

    __name__: str
    CHECKS: tuple[Check, ...]
    listen: Callable[[Watch], None]
    """Attaches the checks to the observations of a process."""


def families() -> Iterator[CheckFamily]:
    """Yield the module of each family."""
    for folder, names in FAMILIES.items():
        for name in names:
            yield cast("CheckFamily", importlib.import_module(f"{__name__}.{folder}.{name}"))
