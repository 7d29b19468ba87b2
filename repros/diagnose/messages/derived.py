"""What follows from the numbers and names of a message: further words for the texts of its family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from repros.diagnose.messages.gpu_memory import read_gpu_memory
from repros.diagnose.messages.state_keys import compare_keys, compare_sizes

Words = dict[str, str]
"""Named groups of a message and what was derived from them; a word that does not apply is absent."""


class Derivation(NamedTuple):
    """The words that a function adds to those of a family's patterns."""

    derive: Callable[[Words, str], Words]
    """A function of the groups and the whole message."""
    words: tuple[str, ...]


def derive(family: str, groups: Words, message: str) -> Words:
    """Return the groups of a message with what follows from them."""
    derivation = DERIVATIONS.get(family)
    return {**groups, **derivation.derive(groups, message)} if derivation else groups


def _flags(**conditions: bool) -> Words:
    return {name: "by the message" for name, holds in conditions.items() if holds}


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.replace(" ", "").split(",") if number]


def _devices(groups: Words, _: str) -> Words:
    devices = {groups[name].split(":")[0].casefold() for name in ("first", "second") if name in groups}
    both = "first" in groups and "second" in groups
    return _flags(two_gpus=both and devices == {"cuda"} and groups["first"] != groups["second"])


def _input_type(groups: Words, _: str) -> Words:
    on_gpu = {side: ".cuda" in groups[side] for side in ("input", "weight")}
    return _flags(
        model_on_cpu=on_gpu["input"] and not on_gpu["weight"],
        input_on_cpu=on_gpu["weight"] and not on_gpu["input"],
        dtypes_differ=on_gpu["input"] == on_gpu["weight"],
    )


def _matmul(groups: Words, _: str) -> Words:
    inner, expected = int(groups["inner"]), int(groups["expected"])
    is_flattened = min(inner, expected) > _WIDEST or (inner > expected and inner % expected == 0)
    return _flags(flattened=is_flattened)


def _invalid_gradient(groups: Words, _: str) -> Words:
    """Return whether the function is the program's own or an extension's: torch's are named as `SliceBackward0`."""
    function = groups.get("function", "")
    return _flags(
        own=function.startswith("_")
        or not function.rstrip("0123456789").endswith("Backward")
        or function[-8:] == "Backward"
    )


_TRAINERS_OWN = {
    "num_items_in_batch",
    "start_time",
    "trial",
    "ignore_keys",
    "logits_to_keep",
    "cache_position",
    "max_depth",
}
"""Arguments that newer trainers and generation loops pass to methods that programs override."""


def _argument(groups: Words, _: str) -> Words:
    name, call = groups["name"], groups["call"].rpartition(".")[2]
    if name in _TRAINERS_OWN:
        return {"override": name}
    is_column = call == "forward" and name in {"text", "label", "prompt", "messages", "token_type_ids", "idx", "id"}
    return {"column": name} if is_column else {}


_WIDEST = 16_384
"""Features of a layer that is no flattened image; wider ones are rare."""


def _conv_channels(groups: Words, _: str) -> Words:
    sizes, channels, expected = _numbers(groups["input"]), int(groups["channels"]), int(groups["expected"])
    is_last = len(sizes) > 2 and sizes[-1] == expected != channels  # noqa: PLR2004 - a batch and a dimension
    return _flags(channels_last=is_last, image={channels, expected} <= {1, 3, 4} and not is_last)


def _conv_dimensions(groups: Words, _: str) -> Words:
    sizes = _numbers(groups.get("input", ""))
    return _flags(stereo=groups.get("operation") == "conv1d" and sizes[-1:] == [2])


def _cat(groups: Words, _: str) -> Words:
    sizes = [int(groups[name]) for name in ("first", "second", "old_first", "old_second") if name in groups]
    return _flags(off_by_one=len(sizes) > 1 and abs(sizes[0] - sizes[1]) == 1)


def _view(groups: Words, _: str) -> Words:
    first, *rest = _numbers(groups["shape"])
    row, elements = 1, int(groups["elements"])
    for size in rest:
        row *= size
    if first > 1 and row > 0 and elements % row == 0 and elements // row < first:
        return {"first": str(first), "batch": str(elements // row)}
    return {}


_LIMITS = {77, 128, 256, 512, 514, 1024, 2048, 4096, 8192}
"""Lengths that models have as their limit."""


def _broadcast(groups: Words, _: str) -> Words:
    first, second = (groups[name] for name in ("first", "second"))
    is_limit = first.isdigit() and second.isdigit() and int(second) in _LIMITS and int(first) > int(second)
    return _flags(limit=is_limit and int(first) not in _LIMITS)


def _expand(groups: Words, _: str) -> Words:
    return _flags(limit=int(groups["existing"]) in _LIMITS and int(groups["wanted"]) > int(groups["existing"]))


def _stack(groups: Words, _: str) -> Words:
    first, second = _numbers(groups["first"]), _numbers(groups["second"])
    is_image = len(first) == len(second) == 3 and first[0] == second[0] and first[0] in {1, 3, 4}  # noqa: PLR2004
    return _flags(images=is_image)


def _target_bounds(groups: Words, _: str) -> Words:
    label = int(groups["label"])
    return _flags(negative=label < 0, grey=label in {63, 127, 128, 192, 254, 255})


def _loss_batches(groups: Words, _: str) -> Words:
    predictions, labels = int(groups["input"]), int(groups["target"])
    is_multiple = labels > 0 and predictions > labels and predictions % labels == 0
    return {"ratio": str(predictions // labels)} if is_multiple else {}


def _loss_sizes(groups: Words, _: str) -> Words:
    output, target = _numbers(groups["input"]), _numbers(groups["target"])
    lacks_one = output == [*target, 1] or target == [*output, 1]
    return _flags(last_one=lacks_one, class_numbers=output[:-1] == target and not lacks_one)


def _dimension(groups: Words, _: str) -> Words:
    number = int(groups["most"]) + 1
    return {"dimensions": f"{number} dimension{'s' if number != 1 else ''}"}


def _layer_norm(groups: Words, _: str) -> Words:
    sizes, shape = _numbers(groups["input"]), _numbers(groups["shape"])
    is_first = len(sizes) > 2 and len(shape) == 1 and sizes[1] == shape[0] != sizes[-1]  # noqa: PLR2004 - as above
    return _flags(channels_first=is_first)


_HALVES = ("Half", "BFloat16", "half", "bfloat16")
_DOUBLES = ("Double", "double", "Float64")


def _dtypes(groups: Words, _: str) -> Words:
    names = [groups[name].rpartition(":")[2] for name in ("first", "second") if name in groups]
    return _flags(half=any(name in _HALVES for name in names), double=any(name in _DOUBLES for name in names))


def _inplace(groups: Words, _: str) -> Words:
    if "version" not in groups:
        return {}
    changes = int(groups["version"]) - int(groups["expected"])
    is_weight = int(groups["expected"]) > 0 or groups.get("function", "").startswith(("TBackward", "AsStrided"))
    return {"changes": "once" if changes == 1 else f"{changes} times", **_flags(weight=is_weight)}


def _checkpoint(groups: Words, message: str) -> Words:
    is_text = groups.get("load_key") in {"v", "<"} or "HeaderTooLarge" in message
    return _flags(pointer=is_text)


_GIBIBYTE = 2**30
_HUGE = 256 * _GIBIBYTE


def _cpu_memory(groups: Words, _: str) -> Words:
    if "bytes" not in groups:
        return _flags(huge=groups["size"].endswith(("TiB", "PiB")))
    size = int(groups["bytes"])
    return {"size": f"{size / _GIBIBYTE:,.3g} GiB", **_flags(huge=size > _HUGE)}


def _cublas(groups: Words, _: str) -> Words:
    is_creation = groups["status"].endswith(("ALLOC_FAILED", "NOT_INITIALIZED")) and "Create" in groups["call"]
    return _flags(no_memory=is_creation)


def _image_tokens(groups: Words, _: str) -> Words:
    """Return what the text has more of, and `cuts` unless it has more tokens than features: truncation leaves fewer."""
    tokens, features = int(groups.get("tokens", "0")), int(groups.get("features", "0"))
    if tokens <= features:
        return {"cuts": "cuts"}
    times, rest = divmod(tokens, features) if features else (0, 1)
    surplus = {"surplus": f"{tokens - features} more"}
    return {**surplus, "times": f"{times} times {features}"} if not rest and times > 1 else surplus


_INNER = {"OptimizedModule": "_orig_mod"}
"""The attribute in which a wrapper has the model, if it is not `module`."""


def _wrapper(groups: Words, _: str) -> Words:
    wrapper = groups.get("wrapper")
    return {"inner": _INNER.get(wrapper, "module")} if wrapper else {}


DERIVATIONS: Mapping[str, Derivation] = {
    "broadcast-sizes": Derivation(_broadcast, ("limit",)),
    "cat-sizes": Derivation(_cat, ("off_by_one",)),
    "checkpoint-damaged": Derivation(_checkpoint, ("pointer",)),
    "conv-channels": Derivation(_conv_channels, ("image", "channels_last")),
    "conv-input-dimensions": Derivation(_conv_dimensions, ("stereo",)),
    "cpu-out-of-memory": Derivation(_cpu_memory, ("size", "huge")),
    "cublas-error": Derivation(_cublas, ("no_memory",)),
    "cuda-out-of-memory": Derivation(
        read_gpu_memory,
        ("total", "free", "allocated", "unallocated", "others", "others_hold", "fragmented", "share"),
    ),
    "device-mismatch": Derivation(_devices, ("two_gpus",)),
    "dimension-out-of-range": Derivation(_dimension, ("dimensions",)),
    "dtype-mismatch": Derivation(_dtypes, ("half", "double")),
    "expand-size": Derivation(_expand, ("limit",)),
    "image-tokens": Derivation(_image_tokens, ("surplus", "times", "cuts")),
    "inplace-modified": Derivation(_inplace, ("changes", "weight")),
    "input-weight-type": Derivation(_input_type, ("model_on_cpu", "input_on_cpu", "dtypes_differ")),
    "invalid-gradient": Derivation(_invalid_gradient, ("own",)),
    "layer-norm-shape": Derivation(_layer_norm, ("channels_first",)),
    "loss-batch-sizes": Derivation(_loss_batches, ("ratio",)),
    "loss-target-size": Derivation(_loss_sizes, ("last_one", "class_numbers")),
    "matmul-shapes": Derivation(_matmul, ("flattened",)),
    "missing-attribute": Derivation(_wrapper, ("inner",)),
    "stack-sizes": Derivation(_stack, ("images",)),
    "state-dict-keys": Derivation(
        compare_keys,
        (
            *("missing", "unexpected", "missing_keys", "unexpected_keys", "strip", "add", "fitting"),
            *("container", "renamed", "compiled_file", "compiled_model"),
        ),
    ),
    "state-dict-sizes": Derivation(compare_sizes, ("count", "empty", "vocabulary", "head", "many")),
    "target-out-of-bounds": Derivation(_target_bounds, ("negative", "grey")),
    "unexpected-argument": Derivation(_argument, ("override", "column")),
    "view-size": Derivation(_view, ("first", "batch")),
}
"""By the family's name."""
