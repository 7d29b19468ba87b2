"""What follows from the numbers that an issue states: a step that is an interval, a share, an address, a least loss."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from repros.diagnose.issue.issue import Issue
from repros.diagnose.issue.numbers import Finding

_AT_STEP = re.compile(
    r"\b(?:at|in|on|after|until|reach\w*|from) (?:the )?(?:global[ _])?(?:steps?|iterations?|iters?)\W{0,3}"
    r"(?P<step>\d{1,6})\b"
    r"|\b(?:at|after) (?:about |exactly |around )?(?P<count>\d{1,6}) (?:steps|iterations|iters)\b",
    re.IGNORECASE,
)
_INTERVALS = {
    r"grad(?:ient)?_acc(?:um\w*)?(?:_steps)?"
    r"|accumulate_grad_batches": "the first step of the optimizer: gradients are "
    "exchanged and the optimizer's states are made there for the first time",
    r"save_steps|save_interval|save_freq|every_n_train_steps|checkpointing_steps": "the first save",
    r"eval_steps|eval_interval|val_check_interval|test_freq|validation_steps": "the first evaluation",
    r"warm_?up_steps|num_warmup_steps|lr_warmup_steps": "the end of the warm-up: the rate is at its highest there",
}
"""Settings that count steps, and what happens for the first time at that step."""
_TRAINED = re.compile(
    r"\btrainable param\w*\W{1,4}(?P<trained>\d[\d,]{5,})\D{1,20}?(?P<all>\d[\d,]{6,})", re.IGNORECASE
)
_LARGE_SHARE = 0.1
"""Share of trained parameters that an adapter alone does not reach."""
_GRADIENT, _STATES = 4, 8
"""Bytes of a trained parameter's gradient and of Adam's two states, in float32."""
_ADAPTER = re.compile(r"\blora\b|\bpeft\b|\bqlora\b|\badapter|\bunsloth\b", re.IGNORECASE)
_BUFFER = re.compile(
    r"(?:empty\w*|zeros\w*|size|shape|tensor)\W{1,12}\(?\[?(?P<rows>\d{5,6}), (?P<width>\d{3,5})\b", re.IGNORECASE
)
_ROWS = range(30_000, 300_001)
"""Sizes of a vocabulary."""
_OF_LANGUAGE = re.compile(r"llama|gpt|qwen|gemma|mistral|bert|vocab|token|lm_head|embed|logits", re.IGNORECASE)
"""Words of a report about a model with a vocabulary."""
_OF_MEMORY = re.compile(r"\boom\b|out ?of ?memory", re.IGNORECASE)
_NODES = re.compile(r"\b(?:n?nodes|num_nodes|num_machines)\W{1,3}(?P<count>\d{1,3})\b", re.IGNORECASE)
_LOOPBACK = re.compile(
    r"\b(?P<name>master_addr|main_process_ip|rdzv[-_]endpoint|dist_url|init_method)\W{1,3}(?:tcp://)?"
    r"(?P<address>127\.0\.0\.\d{1,3}|localhost)\b",
    re.IGNORECASE,
)
_OTHER_ADDRESS = re.compile(
    r"\b(?:master_addr|main_process_ip|rdzv[-_]endpoint|dist_url|init_method)\b(?:[ =:\"']{1,3}\$"
    r"|\W{1,3}(?:tcp://)?(?!127\.|localhost)(?:\d{1,3}\.\d|[\w-]{0,40}\d|[\w-]{1,40}\.\w))",
    re.IGNORECASE,
)
_PART = re.compile(r"[`\n]|(?<=[.;])\s")
"""What ends a command or a sentence."""
_MOST_NODES = 64
_RATE = re.compile(
    r"\b(?:lr|learning[ _]rate)\W{1,4}(?:is |was |to |of )?(?P<rate>(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d{1,2})?)\b",
    re.IGNORECASE,
)
_TINY = 1e-7
_ACCURACY = re.compile(
    r"\b(?:top-?1|acc(?:uracy)?(?:_top1)?)\b[^\n]{0,12}?(?<![\d.])"
    r"(?P<value>1\.0+|0\.9[89]\d*|(?:9[89](?:\.\d+)?|100(?:\.0+)?) ?%)",
    re.IGNORECASE,
)
_LOSS = re.compile(
    r"(?<![A-Za-z])(?:[a-z]+_)?loss\w*\b[^\n]{0,40}?\b(?:at|of|around|about|to|is|stays?"
    r"|stuck)\b[^\n\d]{0,12}(?P<value>\d\.\d{2,})",
    re.IGNORECASE,
)
_MOST_CLASSES, _CLOSE, _HIGH = 100, 2e-3, 0.9
_CHANCE, _SURE = 0.1, 0.999
"""Where no number of classes is stated: the share of losses that are near the least one of some number by chance, and
the accuracy."""
_SPLIT = re.compile(r"(?P<train>train\w*)|(?P<other>val\w*|eval\w*|test\w*)", re.IGNORECASE)
_LONGEST_SPLIT = 20
"""Characters in front of a metric's value that say of which data it is."""
_PERPLEXITY = re.compile(r"\b(?:perplexity|ppl)\W{1,6}(?P<value>\d+(?:\.\d+)?(?:e\+?\d+)?)", re.IGNORECASE)
_EVAL_LOSS = re.compile(r"\b(?:eval|val|validation|test)[_ ]loss\W{1,6}(?P<value>\d+\.\d+)", re.IGNORECASE)
_LARGEST_EXPONENT = 50
_PRINTED = re.compile(
    r"loss\W{1,6}(?P<loss>\d+(?:\.\d+)?)\b[^\n]{0,40}grad_?norm\W{1,6}(?P<norm>nan|\d+(?:\.\d+)?)", re.IGNORECASE
)
_CLASSES = re.compile(
    r"\b(?:num_labels|num_classes|n_classes|train_group_size|num_choices)\W{1,3}(?P<count>\d{1,4})\b", re.IGNORECASE
)
_OF_CLASSES = re.compile(r"\b(?P<count>\d{1,4})(?: \w+|-way)? ?(?:class(?:es)?|categories|labels)\b", re.IGNORECASE)
_FEWEST = 3
_LEARNED = 0.7
"""Share of the loss of guessing below which a model had learned something."""
_NEAR = 0.03


def find_arithmetic(issue: Issue, text: str) -> list[Finding]:
    """Return what follows from stated numbers, the most certain first.

    Args:
        issue: the issue.
        text: its whole text.
    """
    return [
        *_of_address(text),
        *_of_certainty(issue, text),
        *_of_guessing(text),
        *_of_step(issue, text),
        *_of_share(text),
        *_of_rate(text),
        *_of_gradient(text),
        *_of_perplexity(text),
    ]


def _of_step(issue: Issue, text: str) -> Iterator[Finding]:
    """Yield the setting that the step of the failure equals."""
    steps = {int(found["step"] or found["count"]) for found in _AT_STEP.finditer(f"{issue.title}\n{issue.seen}")}
    for names, meaning in _INTERVALS.items():
        for found in re.finditer(rf"\b(?P<name>{names})\W{{1,4}}(?P<count>\d{{1,6}})\b", text, re.IGNORECASE):
            if int(found["count"]) in steps and int(found["count"]) > 1:
                yield Finding(
                    "step-is-interval",
                    text=f"step {found['count']} is {found['name']} = {found['count']}: {meaning}",
                )
                return


def _of_share(text: str) -> Iterator[Finding]:
    """Yield the trained share of a model that runs out of memory, and a buffer with the shape of an embedding."""
    if not _OF_MEMORY.search(text):
        return
    if found := _TRAINED.search(text):
        trained, total = (int(found[name].replace(",", "")) for name in ("trained", "all"))
        if total > trained > _LARGE_SHARE * total and _ADAPTER.search(text):
            gradients, states = (trained * size / 2**30 for size in (_GRADIENT, _STATES))
            yield Finding(
                "share-large",
                text=f"{trained / 1e9:.3g} of {total / 1e9:.3g} billion parameters are trained ({trained / total:.0%}),"
                f" more than an adapter has: embeddings, an output layer (modules_to_save) or an unfrozen part are"
                f" among them; in float32 {gradients:.1f} GiB of gradients and {states:.1f} GiB of Adam's states",
                check="print(sorted(((p.numel(), n) for n, p in model.named_parameters() if p.requires_grad),"
                " reverse=True)[:5])",
            )
    shape = next((one for one in _BUFFER.finditer(text) if int(one["rows"]) in _ROWS), None)
    if shape and _OF_LANGUAGE.search(text):
        rows, width = int(shape["rows"]), int(shape["width"])
        yield Finding(
            "buffer-vocabulary",
            text=f"a tensor of {rows:,} x {width:,} has the shape vocabulary x width, {rows * width * 4 / 2**30:.2f}"
            " GiB in float32: it may be the weight, the gradient or a copy of the embedding or the output layer",
        )


def _of_address(text: str) -> Iterator[Finding]:
    parts = [part for part in _PART.split(text.replace("\\\n", " ")) if _LOOPBACK.search(part)]
    others = bool(_OTHER_ADDRESS.search(text))
    nodes = max((_nodes_in(part) or (0 if others else _nodes_in(text)) for part in parts), default=0)
    found = _LOOPBACK.search(text)
    if found and nodes > 1 and others:
        yield Finding(
            "master-differs",
            text=f"{found['name']} is {found['address']} in one command for {nodes} nodes, and another address"
            " elsewhere: nodes that wait at other addresses train alone; print(dist.get_world_size()) on each node has"
            " to be nodes x processes per node",
        )
    elif found and nodes > 1:
        yield Finding(
            "master-loopback",
            "The nodes cannot join: the address of the master is that of each machine itself",
            f"{found['name']} is {found['address']}, and {nodes} nodes are to join: on each node this is the node"
            " itself",
            f"{found['name']} = an address of node 0 that the others reach (hostname -I on it), the same on all nodes;"
            f" print(dist.get_world_size()) has to be nodes x processes per node",
        )


def _nodes_in(text: str) -> int:
    """Return the largest stated number of nodes that is one of machines; 0 without one."""
    return max((count for found in _NODES.finditer(text) if (count := int(found["count"])) <= _MOST_NODES), default=0)


def _of_rate(text: str) -> Iterator[Finding]:
    rates = [float(found["rate"]) for found in _RATE.finditer(text)]
    if rates and 0 < max(rates) <= _TINY:
        yield Finding(
            "rate-tiny",
            text=f"the learning rate is {max(rates):g}: with Adam a step moves a weight by about this at most, so a"
            " short run can neither diverge nor learn by it",
        )


def _of_certainty(issue: Issue, text: str) -> Iterator[Finding]:
    """Yield the least loss of a softmax that is applied twice, if the accuracy is nearly 1 and the loss is that."""
    columns = _columns(text)
    found = _ACCURACY.search(text)
    accuracy = (
        found["value"]
        if found
        else next((value for name, value in columns.items() if re.search(r"acc", name, re.IGNORECASE)), "")
    )
    stated = _LOSS.search(f"{issue.title}\n{issue.seen}")
    loss = float(stated["value"]) if stated else 0.0
    if not stated or (found and {_split(found), _split(stated)} == {"train", "other"}):
        return
    if loss < _HIGH or not re.fullmatch(r"(?:1(?:\.0+)?|0?\.9[89]\d*|(?:9[89](?:\.\d+)?|100(?:\.0+)?) ?%)", accuracy):
        return
    least = {count: math.log(math.e + count - 1) - 1 for count in range(3, _MOST_CLASSES)}
    value = float(accuracy.rstrip(" %")) / (100 if "%" in accuracy else 1)
    if count := _classes_of(stated["value"], text, least, is_sure=value >= _SURE):
        yield Finding(
            "softmax-twice",
            "The loss gets probabilities in place of scores: softmax is applied twice",
            f"the accuracy is {accuracy} and the loss {loss:g}: nearly all is right, and the loss of a right"
            f" classifier is near 0; ln(e + {count - 1}) - 1 = {least[count]:.4g} is the least that {count} classes"
            " reach if softmax is applied in front of a loss that applies it",
            "print(outputs.sum(-1), outputs.min(), outputs.max())  # 1 for each row: probabilities; give cross_entropy"
            " the scores",
        )


def _split(found: re.Match[str]) -> str | None:
    """Return whether a metric is of the training data or of `other` ones; None if its name does not say so."""
    start = max(found.start() - _LONGEST_SPLIT, 0)
    names = list(_SPLIT.finditer(found.string[start : found.end()]))
    return names[-1].lastgroup if names else None


def _classes_of(loss: str, text: str, least: Mapping[int, float], *, is_sure: bool) -> int:
    """Return the number of classes with a least loss; 0 if no stated one has it, or if many numbers may have it.

    Args:
        loss: the loss, with the digits that are printed.
        text: the issue's whole text.
        least: the least losses by the number of classes.
        is_sure: whether the accuracy is so high that the loss is not that of a classifier.
    """
    stated = {int(found["count"]) for one in (_CLASSES, _OF_CLASSES) for found in one.finditer(text)}
    rounding = 10.0 ** -len(loss.partition(".")[2])
    count = min(stated & least.keys() or least, key=lambda count: abs(least[count] - float(loss)))
    above = float(loss) - least[count]
    chance = (rounding + _CLOSE) * (math.e + count)  # 1 / (e + count) lies between neighbours
    is_near = -rounding / 2 <= above <= rounding / 2 + _CLOSE
    return count if is_near and (count in stated or (not stated and is_sure and chance < _CHANCE)) else 0


def _columns(text: str) -> dict[str, str]:
    """Return the last row of the first table of names and numbers, separated by commas: `loss, acc` and `0.1, 0.99`."""
    lines = [[cell.strip() for cell in line.split(",")] for line in text.split("\n")]
    for head, row in pairwise(lines):
        is_table = len(head) == len(row) >= _FEWEST and all(re.fullmatch(r"[\d.e+-]+", cell) for cell in row)
        if is_table and all(re.match(r"[A-Za-z]", cell) for cell in head):
            return dict(zip(head, row, strict=True))
    return {}


def _of_guessing(text: str) -> Iterator[Finding]:
    """Yield that printed losses have risen to that of guessing among a stated number of classes."""
    losses = [float(found["loss"]) for found in _PRINTED.finditer(text)]
    for found in _CLASSES.finditer(text):
        guess = math.log(int(found["count"])) if int(found["count"]) > 1 else 0.0
        last = losses[-_FEWEST:]
        is_guess = len(losses) > _FEWEST and guess and all(abs(loss - guess) < _NEAR for loss in last)
        if is_guess and min(losses) < _LEARNED * guess:
            yield Finding(
                "collapsed",
                "The model has collapsed: its loss is that of guessing",
                f"the last printed losses are {last[-1]:g}, ln {found['count']} = {guess:.4g} is that of guessing"
                f" among {found['count']}, and {min(losses):g} was reached before: the outputs no longer depend on"
                " the input",
                "from a checkpoint before it: print(grad_norm, lr) for each step  # norms far above the usual ones"
                " first: half of the rate, warm-up, clipping; float16: bfloat16",
            )
            return


def _of_gradient(text: str) -> Iterator[Finding]:
    """Yield that a loss is finite where the gradient is NaN first, and that a later 0 is a NaN that a filter hides."""
    pairs = [(float(found["loss"]), float(found["norm"])) for found in _PRINTED.finditer(text)]
    at = next((at for at, (_, norm) in enumerate(pairs) if math.isnan(norm)), None)
    if at is None or pairs[at][0] == 0:
        return
    hidden = any(loss == 0 and math.isnan(norm) for loss, norm in pairs[at:])
    later = "; the 0.0 behind it is such a NaN, printed as 0" if hidden else ""
    yield Finding(
        "gradient-first",
        text=f"where the norm is NaN first, the printed loss is finite ({pairs[at][0]:g}): the backward pass made the"
        f" NaN, unless the Trainer's logging_nan_inf_filter has left a loss of NaN out of the printed mean{later}",
    )


def _of_perplexity(text: str) -> Iterator[Finding]:
    perplexity, loss = _PERPLEXITY.search(text), _EVAL_LOSS.search(text)
    if not perplexity or not loss or float(loss["value"]) > _LARGEST_EXPONENT:
        return
    stated, computed = float(perplexity["value"]), math.exp(float(loss["value"]))
    same = abs(stated - computed) < max(0.02 * computed, 0.01)
    text = (
        f"the perplexity {stated:g} is exp({loss['value']}): the same number as the loss"
        if same
        else f"exp({loss['value']}) is {computed:.4g}, and the stated perplexity is {stated:g}: it is of other tokens"
        " or a mean of exponentials"
    )
    yield Finding("perplexity", text=text)
