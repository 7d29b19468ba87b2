"""What an adapter of PEFT has learned is in its file, reaches the model from there, and stays in it.

## What it does
`adapter_not_loaded`: reports an adapter's file of whose tensors none fits a name of the model that it is loaded into,
when the model is called or the program ends. `adapter_replaced`: reports that `get_peft_model` is given a model with an
adapter and replaces weights that were loaded and that no forward has used. `adapter_saved_empty`: reports that
`save_pretrained` writes an adapter's file without a number. `adapter_switched`: reports that `load_adapter` makes
another adapter require gradients, or no longer, when a forward in train mode or a step follows, or the program ends.

## Why is this bad?
What was learned is lost, or another adapter is trained than was meant.

## Example
`get_peft_model(PeftModel.from_pretrained(base, path), config)` to go on with a training.

## Known misses
Models that are given, or whose replacement is given, something that fits. A part of the tensors. Prompts, which PEFT
loads in another way. Adapters that were used before they are replaced. Processes that do not write the file. Adapters
after `set_adapter`, and where `requires_grad` is set back. After an optimizer's step, replaced adapters, and those that
are no longer trained.

## Cost
Nothing in a step. One look at the names of what is loaded, and at the beginning of each file that is saved.
"""

from __future__ import annotations

import json
import os
import weakref
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.adapters import adapted_layers, is_training
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from peft import PeftModel
    from peft.tuners.tuners_utils import BaseTuner, BaseTunerLayer
    from torch.nn import Module, Parameter

CHECKS = (
    Check("adapter_not_loaded", "no tensor of an adapter's file fits the model that it is loaded into"),
    Check("adapter_replaced", "a loaded adapter is replaced by a new one before it was used"),
    Check("adapter_saved_empty", "an adapter's file is saved without its weights"),
    Check("adapter_switched", "loading an adapter freezes or unfreezes another one"),
)


class _Loaded:
    """The adapters that were loaded."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._missed: dict[frozenset[str], tuple[weakref.ref[PeftModel], str]] = {}
        """The states that did not fit, by their names: the model, and the text of the finding."""
        self._unused: dict[int, weakref.ref[Parameter]] = {}
        """The loaded parameters until their first use, by `id`."""
        self._before: list[set[int]] = []

    def adapter_filled(self, model: PeftModel, name: str, state: object, result: object) -> None:
        config = getattr(model, "peft_config", {}).get(name)
        keys = frozenset(state) if isinstance(state, Mapping) else frozenset()
        unexpected, missing = (set(getattr(result, kind, ())) for kind in ("unexpected_keys", "missing_keys"))
        if config is None or getattr(config, "is_prompt_learning", False) or not keys:
            return
        if len(unexpected) < len(keys):
            for other, (reference, _) in [*self._missed.items()]:
                if reference() is model or (other == keys and reference() is None):
                    del self._missed[other]
            for key, parameter in model.named_parameters():
                if f".{name}" in key and key not in missing:
                    self._unused[id(parameter)] = weakref.ref(parameter)
            self._watch.listen_to(self, "adapted_fed", "calling")
            return
        own = next((key for key, _ in model.named_parameters() if f".{name}" in key), "none")
        text = (
            f"none of the {len(keys)} tensors of this adapter's file fits the model, which keeps the weights that it"
            f" began with: {min(unexpected)}, expected a name such as {own}"
        )
        self._missed[keys] = weakref.ref(model), text
        self._watch.listen("adapted_fed", self.adapted_fed)

    def adapted_fed(self, tuner: BaseTuner, _: object) -> None:
        for keys, (reference, text) in [*self._missed.items()]:
            model = reference()
            if model is not None and any(part is tuner for part in model.modules()):
                del self._missed[keys]
                self._watch.report("adapter_not_loaded", text)
        for parameter in tuner.parameters() if self._unused else ():
            self._unused.pop(id(parameter), None)
        if not self._missed and not self._unused:
            self._watch.ignore("adapted_fed", self.adapted_fed)

    def calling(self, module: Module) -> None:
        """Notice uses outside of the model's forward, as in `generate`."""
        for parameter in module._parameters.values():
            self._unused.pop(id(parameter), None)
        if not self._unused:
            self._watch.ignore("calling", self.calling)

    def ends(self) -> None:
        for _, text in self._missed.values():
            self._watch.report("adapter_not_loaded", text, place=None)

    def adapting(self, model: Module | None) -> None:
        tuner: BaseTuner = getattr(model, "base_model", None) if hasattr(model, "peft_config") else None
        unused = {key for key, reference in self._unused.items() if reference() is not None}
        if self._watch.count("before_step") or tuner is None:  # calls were not observed since
            unused = set()
        own = {id(parameter) for parameter in tuner.parameters()} if unused else set()
        self._before.append(own & unused)

    def adapted(self, model: PeftModel) -> None:
        before = self._before.pop() if self._before else set()
        lost = before - {id(parameter) for parameter in model.parameters()} if before else before
        for key in lost:
            self._unused.pop(key, None)
        if lost:
            text = (
                f"{len(lost)} loaded weights of an adapter are replaced by new ones before they were used: the model"
                " that is given to get_peft_model has an adapter of that name"
            )
            self._watch.report("adapter_replaced", text, numbers={"weights": len(lost)})


class _Saved:
    """The files of adapters."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def adapters_saved(self, model: PeftModel, folder: object, names: Iterable[str]) -> None:
        tuner = getattr(model, "base_model", None)
        if not isinstance(folder, (str, os.PathLike)) or tuner is None or next(_layers(tuner), None) is None:
            return
        for name in names:
            place = os.path.join(folder, name) if name != "default" else os.fspath(folder)
            for file in ("adapter_model.safetensors", "adapter_model.bin"):
                if _is_empty(os.path.join(place, file)):
                    text = f"{file} of the adapter {name} is saved without a number of its weights"
                    self._watch.report("adapter_saved_empty", text, names=[name])


class _Switched:
    """The changes of other adapters by `load_adapter`."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._before: dict[int, tuple[weakref.ref[Parameter], bool]] = {}
        self._suspects: list[tuple[weakref.ref[PeftModel], list[tuple[weakref.ref[Parameter], bool]], str, bool]] = []
        """Model, changed parameters with their earlier `requires_grad`, the text, and whether training may be over."""

    def adapter_loading(self, model: PeftModel) -> None:
        tuner = getattr(model, "base_model", None)
        layers = _layers(tuner) if tuner is not None else ()
        self._before = {
            id(parameter): (weakref.ref(parameter), parameter.requires_grad)
            for layer in layers
            for parameter in layer.parameters()
        }

    def adapter_loaded(self, model: PeftModel, name: str) -> None:
        present = [(reference, reference(), was) for reference, was in self._before.values()]
        changed = [
            (reference, was)
            for reference, parameter, was in present
            if parameter is not None and parameter.requires_grad is not was
        ]
        self._before = {}
        if not changed:
            return
        is_frozen = changed[0][1]
        text = (
            f"load_adapter({name!r}) has {'frozen' if is_frozen else 'unfrozen'} {len(changed)} parameters of another"
            f" adapter{', which is trained no more' if is_frozen else ' in the place of its own'}"
        )
        may_be_over = is_frozen and self._watch.count("before_step") > 0
        self._suspects.append((weakref.ref(model), changed, text, may_be_over))
        self._watch.listen_to(self, "adapted_fed", "before_step")

    def adapter_set(self, model: PeftModel) -> None:
        self._suspects = [one for one in self._suspects if model not in _of(one[0]())]

    def adapted_fed(self, tuner: BaseTuner, _: object) -> None:
        if is_training(tuner):
            self._judge()

    def before_step(self, *_: object) -> None:
        self._judge()

    def ends(self) -> None:
        self._suspects = [one for one in self._suspects if not one[3]]
        self._judge(place=None)

    def _judge(self, **details: Any) -> None:
        suspects, self._suspects = self._suspects, []
        self._watch.ignore_from(self, "adapted_fed", "before_step")
        for _, changed, text, _ in suspects:
            present = [(reference(), was) for reference, was in changed]
            if all(parameter is None or parameter.requires_grad is not was for parameter, was in present):
                self._watch.report("adapter_switched", text, numbers={"parameters": len(changed)}, **details)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    loaded, saved, switched = _Loaded(watch), _Saved(watch), _Switched(watch)
    watch.listen_to(loaded, "adapter_filled", "adapting", "adapted", "ends")
    watch.listen_to(switched, "adapter_loading", "adapter_loaded", "adapter_set", "ends")
    watch.listen("adapters_saved", saved.adapters_saved)


def _layers(tuner: BaseTuner) -> Iterator[BaseTunerLayer]:
    return adapted_layers(tuner) if hasattr(tuner, "modules") else iter(())


def _of(model: PeftModel | None) -> tuple[Module | None, ...]:
    """Return the objects whose `set_adapter` sets a model's adapter."""
    return () if model is None else (model, getattr(model, "base_model", None))


def _is_empty(file: str) -> bool:
    """Return whether a file of tensors exists and has no number."""
    if not os.path.exists(file):
        return False
    if file.endswith(".safetensors"):
        with open(file, "rb") as opened:
            text = opened.read(int.from_bytes(opened.read(8), "little")).decode()
        header, _ = json.JSONDecoder().raw_decode(text)  # `{},` and more, for no tensors, in 0.4
        return all(0 in tensor["shape"] for name, tensor in header.items() if name != "__metadata__")
    if not zipfile.is_zipfile(file):
        return False
    with zipfile.ZipFile(file) as archive:
        return not any("/data/" in part.filename and part.file_size for part in archive.infolist())
