"""Observations of tokens in transformers: `tokenized`, `templated`, `collated` and `numbered`.

`tokenized(tokenizer, arguments, keywords, result)` and `templated(...)`, of the same form: a call of a tokenizer, and
of its `apply_chat_template`. `collated(collator, examples, batch)`: DataCollatorForLanguageModeling has made a batch.
`numbered(arguments, keywords)`: the forward of a model that numbers positions from 0 unless it is given them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

_NUMBERING = {
    "transformers.models.gpt2.modeling_gpt2": "GPT2Model",
    "transformers.models.gpt_neo.modeling_gpt_neo": "GPTNeoModel",
}
"""Models with learned positions that ask no attention mask for them, by module."""


def attach(watch: Watch) -> None:
    """Observe each class once its module is imported."""

    def patch_tokenizers(module: ModuleType) -> None:
        for name, observation in (("__call__", "tokenized"), ("apply_chat_template", "templated")):
            if hasattr(module.PreTrainedTokenizerBase, name):
                around(module.PreTrainedTokenizerBase, name, returned=_notify_call(watch, observation))

    def collated(args: Args, kwargs: Kwargs, batch: object) -> None:
        examples = args[1] if len(args) > 1 else next(iter(kwargs.values()), None)
        watch.notify("collated", args[0], examples, batch)

    def patch_collator(module: ModuleType) -> None:
        around(module.DataCollatorForLanguageModeling, "torch_call", returned=collated)

    when_imported("transformers.tokenization_utils_base", patch_tokenizers)
    when_imported("transformers.data.data_collator", patch_collator)
    for place, name in _NUMBERING.items():
        when_imported(place, functools.partial(_patch_model, watch, name))


def _notify_call(watch: Watch, observation: str) -> Callable[[Args, Kwargs, object], None]:
    def called(args: Args, kwargs: Kwargs, result: object) -> None:
        watch.notify(observation, args[0], args[1:], kwargs, result)

    return called


def _patch_model(watch: Watch, name: str, module: ModuleType) -> None:
    kind = getattr(module, name, None)
    if kind is not None:
        around(kind, "forward", before=lambda args, kwargs: watch.notify("numbered", args[1:], kwargs))
