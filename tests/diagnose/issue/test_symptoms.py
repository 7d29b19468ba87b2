"""What an issue without an error reports: its symptom and the change of release."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.needles import has_needles, needles_of
from repros.diagnose.issue.symptoms import check_of, find_symptom, load_symptoms, possible_causes, rank_by_words
from tests.package_catalogue import load

SENTENCES = {
    "checkpoint-size": "The saved checkpoint is empty, it has only 2 KB.",
    "not-saved": "ModelCheckpoint does not save the best model.",
    "tied-weights": "After saving, lm_head and the embeddings are no longer equal, so tie_word_embeddings is broken.",
    "dtype-loaded": "from_pretrained loads the weights as float32.",
    "metrics-ranks": "With 4 GPUs the validation accuracy is lower than on one device because of DDP.",
    "eval-differs": "The evaluation loss differs from the training loss on the same data after each epoch.",
    "reproducible": "Two runs with the same seed differ.",
    "same-output": "The classifier predicts the same label for every image: the logits are identical for all inputs.",
    "eval-missing": "My compute_metrics is never called.",
    "eval-nan": "The validation loss is NaN, and the training loss falls.",
    "mode-changed": "Behind load_adapter the model is back in training mode.",
    "ema": "The EMA weights are far worse than the raw ones.",
    "never-stops": "After fine-tuning the model never stops generating.",
    "one-token-output": "After GRPO the answers are only !!!!!!!!!!.",
    "generated-nonsense": "After merge_and_unload the model writes gibberish.",
    "adapter-without-effect": "The LoRA adapter has no effect on the answers.",
    "padding": "Batched generation gives wrong answers with left padding.",
    "chat-template": "The chat template is applied twice, so there is a double BOS.",
    "image-black": "After the LoRA training all pictures are pure noise.",
    "preference-reward-falls": "The chosen rewards decrease in DPO.",
    "memory-start": "OOM at initialization of FSDP.",
    "memory-resume": "It runs out of memory only when we resume: out of memory after load_state_dict.",
    "memory-kept": "The GPU memory is not freed after del model.",
    "memory-uneven": "GPU 0 uses more memory than the others.",
    "memory-not-smaller": "LoRA does not reduce the memory.",
    "grad-none": "The grad of every vision layer is None.",
    "gradients-not-averaged": "With this setting the gradients are never synchronized.",
    "rate-after-restart": "The learning rate of CosineAnnealingLR is another one after a restart.",
    "success-rate": "The success rate on our simulator is only 12%.",
    "lora-not-on-module": "No LoRA adapters are put on the experts.",
    "hang-ray": "The Ray actors stay pending and nothing runs.",
    "hang-preprocessing": "dataset.map with num_proc=8 hangs at 99%.",
    "hang-saving": "Training gets stuck when it saves a checkpoint.",
    "hang-epoch-end": "At the end of the first epoch rank 1 hangs.",
    "hang-workers": "The DataLoader hangs with num_workers=4.",
    "hang-moe": "Our mixture of experts is stuck with ZeRO-3.",
    "hang-vllm": "GRPO with use_vllm is blocked.",
    "hang-generation": "model.generate hangs on rank 0 with FSDP.",
    "hang-nodes": "Only one node joins, the other one waits at the rendezvous.",
    "hang-start": "Nothing moves: it is stuck at 0% on four cards.",
    "one-gpu": "I have four cards, but only one GPU is used.",
    "memory-evaluation": "Out of memory during evaluation, while training is fine.",
    "memory-saving": "OOM while saving the optimizer.",
    "memory-host": "The CPU memory grows until the job is killed.",
    "memory-grows": "GPU memory increases with each step.",
    "slow-compiled": "torch.compile recompiles in every step.",
    "slow": "Training is much slower on two GPUs.",
    "packing": "With packing=True the loss is higher.",
    "compiler-failed": "After the upgrade the first step ends with an InductorError of the backend.",
    "compiled": "With torch.compile the output is another one.",
    "rl-logprob-gap": "The logprob_abs_diff of rollout and trainer is 0.3, so there is a gap.",
    "rl-value-loss": "The value function loss explodes in iteration 5,000.",
    "rl-kl": "The KL loss suddenly jumps in DAPO.",
    "rl-entropy": "The entropy collapses within 40 updates.",
    "rl-cut-completions": "All of the responses hit the maximum, and clipped_ratio is 1.",
    "rl-score-constant": "At the first validation val/test_score/gsm8k is -1.0.",
    "rl-collapse": "Our GRPO run is fine for 600 updates and collapses then.",
    "rl-flat-reward": "The reward does not rise in 300 updates.",
    "reward-constant": "In GRPO the reward stays at zero.",
    "masked-labels": "All labels are -100 with assistant_only_loss.",
    "loss-zero": "The training loss is 0.0 from the first step on.",
    "masked-by-checkpointing": "Gradient checkpointing gives wrong gradients.",
    "resume": "After resuming from a checkpoint the loss is wrong.",
    "accumulation": "The grad norm with gradient accumulation of 4 is four times as large.",
    "first-nan": "From step 200 on the loss is NaN.",
    "scheduler": "The learning rate stays constant, the scheduler is ignored.",
    "clipping": "max_grad_norm is ignored under DeepSpeed.",
    "step-count": "The total optimization steps are wrong with two GPUs.",
    "pipeline-loss": "With pipeline parallel the loss is -1 in the console.",
    "labels-unmasked": "The labels are identical to input_ids.",
    "gradient-zero": "The grad norm is 0.0 at all steps.",
    "gradient-large": "The gradients explode to 5000.",
    "loss-leap": "The loss suddenly rises at step 900 and stays there.",
    "loss-unstable": "The loss oscillates between 2 and 4.",
    "step-without-effect": "The weights are not updated at step 7.",
    "ends-early": "Training stops early without any error.",
    "gpu-new": "Is an RTX 5090 not supported?",
    "checkpoint-weights": "The saved model has the wrong weights.",
    "not-reproduced": "I cannot reproduce the results of the paper.",
    "overfitting": "The model overfits from the second epoch on.",
    "worse-model": "After LoRA the answers are much worse.",
    "metrics": "The F1 is always zero.",
    "data": "Every worker yields the same batches.",
    "loss-of-release": "The transformers version matters for the loss.",
    "hang": "Rank 1 hangs in an all_reduce.",
    "ranks": "With DDP on 2 GPUs the parameters of the ranks differ.",
    "memory": "CUDA runs out of memory.",
    "not-learning": "The loss does not decrease, whatever the optimizer.",
    "loss-changed": "The loss is three times higher than in the paper.",
}
"""In the order in which they are tried."""


def test_each_symptom_is_found_by_its_words() -> None:
    found = {name: find_symptom(read_issue(f"# A question\n\n{text}\n")) for name, text in SENTENCES.items()}
    assert {name: one and one.symptom.name for name, one in found.items()} == {name: name for name in SENTENCES}
    assert [symptom.name for symptom in load_symptoms()] == [*SENTENCES]
    assert all(one and one.sentence.rstrip(".") == SENTENCES[name].rstrip(".") for name, one in found.items())


def test_the_title_decides_before_the_text() -> None:
    issue = read_issue("# The run hangs\n\nBefore that the loss was NaN.\n")
    found = find_symptom(issue)
    assert found
    assert (found.symptom.name, found.sentence) == ("hang", "The run hangs")
    assert find_symptom(read_issue("# A question\n\nHow do I set the seed?\n")) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The accuracy is stuck at 0% on four GPUs.", "hang-start"),
        ("I classify X-ray images and the loader hangs.", "hang-ray"),
        ("I have only one GPU and train with LoRA.", "one-gpu"),
        ("Can I train on one GPU only?", "one-gpu"),
        ("The loss of our mixture of experts is higher.", "hang-moe"),
        ("How can I reproduce this setting?", "not-reproduced"),
        ("It generates fine!!!", "one-token-output"),
        ("On my RTX 5090 block swap crashes at any value but 0.", "gpu-new"),
        ("Gradient accumulation is 0 by default.", "gradient-zero"),
        ("We train with an EMA of 0.999 and the loss is lower.", "ema"),
        ("It stops at a breakpoint after 3 steps.", "ends-early"),
        ("The loss jumped over the fence of 2.", "loss-unstable"),
        ("The images are black and white photos of cats.", "image-black"),
        ("It does not even overfit one batch.", "overfitting"),
        ("The checkpoint is not restored in whole.", "not-saved"),
        ("The answer is `It It It It It It` and so on.", "never-stops"),
    ],
)
def test_other_words_are_not_a_symptom(text: str, name: str) -> None:
    found = find_symptom(read_issue(f"# A question\n\n{text}\n"))
    assert found is None or found.symptom.name != name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("From step 9 on the loss is NaN. We use DeepSpeed with ZeRO-2.", "safe_get_full_grad"),
        ("From step 9 on the loss is NaN in Megatron-LM.", "main_grad"),
        ("From step 9 on the loss is NaN after fully_shard.", "to_local"),
        ("From step 9 on the loss is NaN in my LightningModule.", "on_after_backward"),
        ("From step 9 on the loss is NaN. DeepSpeed version: not installed", "isfinite"),
        ("The loss does not decrease with SFTTrainer.", "on_pre_optimizer_step"),
    ],
)
def test_the_check_works_with_the_wrapper_that_a_report_names(text: str, words: str) -> None:
    issue = read_issue(f"# A question\n\n{text}\n")
    found = find_symptom(issue)
    assert found
    assert words in check_of(found.symptom, (), issue)


def test_the_failures_of_a_symptom_are_in_the_catalogue_and_not_twice() -> None:
    known = {repro.id for repro in load()}
    for symptom in load_symptoms():
        assert {*symptom.ids} <= known
        assert len({*symptom.ids}) == len(symptom.ids)
        assert symptom.check
        assert symptom.next


def test_each_cause_has_a_fix_and_a_public_thread() -> None:
    causes = [cause for symptom in load_symptoms() for cause in symptom.causes]
    assert all(symptom.causes for symptom in load_symptoms())
    assert [cause.text for cause in causes if not cause.fix or not cause.threads] == []
    assert all(thread.startswith("https://github.com/") for cause in causes for thread in cause.threads)


def test_the_check_of_a_symptom_has_another_result_for_each_cause() -> None:
    for symptom in load_symptoms():
        results = [cause.shows for cause in symptom.causes if cause.shows]
        assert len(set(results)) == len(results), symptom.name
        assert len(results) in {0, 1, len(symptom.causes)}, symptom.name
        if len(symptom.causes) > 1 and not results:
            assert len(re.findall(r": ", symptom.check.partition("#")[2])) > 1, symptom.name


def test_an_own_check_of_a_cause_names_its_result() -> None:
    checks = [cause.check for symptom in load_symptoms() for cause in symptom.causes if cause.check]
    assert [check for check in checks if not re.search(r"#|: ", check)] == []


def test_a_fact_brings_the_check_of_its_cause() -> None:
    symptom = replace(LOSS_ZERO, checks=())
    labels = replace(symptom.causes[1], check="print(labels)", favoured_by=("accuracy-zero",))
    others = [symptom.causes[0]]
    issue = read_issue("# The loss is 0\n\nNothing.\n")
    assert check_of(symptom, [labels, *others], issue) == symptom.check
    assert check_of(symptom, [labels, *others], issue, lambda name: name == "accuracy-zero") == "print(labels)"
    assert check_of(symptom, [labels], issue) == "print(labels)"


LOSS_ZERO = next(symptom for symptom in load_symptoms() if symptom.name == "loss-zero")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("The loss is 0.0 and grad_norm is nan in fp16.", "the real loss is NaN"),
        ("The loss is 0.0 since I use a collator with a response template.", "all labels are masked"),
        ("The loss is 0.0 suddenly, from step 300 on.", "the weights are not finite"),
    ],
)
def test_the_words_of_a_report_choose_among_the_causes(text: str, first: str) -> None:
    named, others = possible_causes(LOSS_ZERO, read_issue(f"# A question\n\n{text}\n"))
    assert [cause.text.startswith(first) for cause in named] == [True]
    assert len(named) + len(others) == len(LOSS_ZERO.causes)


def test_a_cause_that_the_report_excludes_is_left_out() -> None:
    nan = next(symptom for symptom in load_symptoms() if symptom.name == "first-nan")
    named, others = possible_causes(nan, read_issue("# NaN in fp16\n\nThe loss is NaN in fp16, and also with fp32.\n"))
    assert not [cause for cause in (*named, *others) if cause.text.startswith("float16")]


TITLES = tomllib.loads((Path(__file__).parent / "symptom_titles.toml").read_text("utf-8"))


@pytest.mark.parametrize(
    "thread", TITLES["thread"], ids=lambda thread: thread["source"].removeprefix("https://github.com/")
)
def test_the_title_of_a_public_thread_has_its_symptom(thread: dict[str, str]) -> None:
    found = find_symptom(read_issue(f"# {thread['title']}\n\nThat is all.\n"))
    assert (found.symptom.name if found else "none") == thread["symptom"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Qwen3 MoE 训推不一致", "rl-logprob-gap"),
        ("GRPO训练过程中reward骤降", "rl-collapse"),
        ("训练到200步后KL骤增", "rl-kl"),
        ("ppo_kl为负", "rl-kl"),
        ("熵坍塌怎么解决", "rl-entropy"),
        ("reward 无法上升", "rl-flat-reward"),
        ("LIBERO 成功率下降", "success-rate"),
        ("续训时学习率不对", "rate-after-restart"),
        ("FSDP 梯度未同步", "gradients-not-averaged"),
        ("vision tower 的梯度为None", "grad-none"),
    ],
)
def test_chinese_titles_have_their_symptom(text: str, name: str) -> None:
    found = find_symptom(read_issue(f"# {text}\n\n请问怎么解决\n"))
    assert found
    assert found.symptom.name == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The cross entropy loss increases.", "rl-entropy"),
        ("The KL loss of our VAE is too high.", "rl-kl"),
        ("optimizer.zero_grad(set_to_none=True) is slow.", "grad-none"),
        ("Gradient clipping is None in my setup.", "grad-none"),
        ("We use cosine annealing with warm restarts.", "rate-after-restart"),
        ("The attention collapses in DETR.", "rl-collapse"),
        ("Which transformers version do you use?", "loss-of-release"),
    ],
)
def test_words_alone_are_no_symptom_of_steps_or_rewards(text: str, name: str) -> None:
    found = find_symptom(read_issue(f"# A question\n\n{text}\n"))
    assert found is None or found.symptom.name != name


def test_failures_with_the_words_of_the_text_come_first() -> None:
    failures = [("RPR-0001", "The finder leaves results"), ("RPR-0002", "A sampler repeats its order")]
    assert [*rank_by_words(failures, "the sampler and the finder have one order")] == failures[::-1]
    assert [*rank_by_words(failures, "the loss is wrong after the first step")] == []
    assert [*rank_by_words(failures, "the sampler has one order", fewest=2)] == [failures[1]]
    assert [*rank_by_words(failures, "the sampler is new", fewest=2)] == []


def test_a_text_with_a_match_has_one_of_its_needles() -> None:
    assert needles_of(r"\b(?:loss\w*|grad_?norm)\b.{0,9}\b(?:nans?|infs?)\b") == (("loss", "grad"), ("nan", "inf"))
    assert needles_of(r"\b(?:a)?\b(?:resum\w*|loads? the)\b") == (("resum", "load"),)
    assert needles_of(r"(?:one)|two") == needles_of(r"(?:\d|x)") == needles_of(r"plain") == ()
    texts = [*SENTENCES.values(), *(thread["title"] for thread in TITLES["thread"])]
    for symptom in load_symptoms():
        for pattern, needles in zip(symptom.patterns, symptom.needles, strict=True):
            found = [text for text in texts if re.search(pattern, text, re.IGNORECASE | re.DOTALL)]
            assert all(has_needles(needles, text.lower()) for text in found)
    assert sum(bool(needles) for symptom in load_symptoms() for needles in symptom.needles) > len(load_symptoms())
