"""Programs with transformers' Trainer, collators and tokenizers: `failing`, one for each check, and `healthy` ones.

All of a kind run in one process, since importing the library takes most of the time.
"""

from __future__ import annotations

import sys
import tempfile

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import nn
from transformers import (
    DataCollatorForLanguageModeling,
    DataCollatorForSeq2Seq,
    EarlyStoppingCallback,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

STRATEGY = "eval_strategy" if hasattr(TrainingArguments, "eval_strategy") else "evaluation_strategy"  # before 4.41
WORDS = {"<unk>": 0, "<s>": 1, "</s>": 2, "one": 3, "two": 4, "<pad>": 5}
ANSWERED = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
TEMPLATE = "{{ bos_token }}{% for message in messages %}{{ message['content'] + ' ' }}{% endfor %}"
MARKED = "{% for message in messages %}{% generation %}{{ message['content'] }}{% endgeneration %}{% endfor %}"


def new_tokenizer(pad="<pad>", bos="<s>", eos="</s>"):
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, WORDS[bos])])
    names = {"unk_token": "<unk>", "pad_token": pad, "bos_token": bos, "eos_token": eos}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=TEMPLATE, **names)


def collate(samples, mlm=False, **names):
    return DataCollatorForLanguageModeling(new_tokenizer(**names), mlm=mlm)(samples)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x, labels=None):
        loss = (self.weight * x).mean() if labels is None else (self.weight - labels.float()).square().mean()
        return {"loss": loss, "logits": x}


class Unnamed(Model):
    def forward(self, x, targets=None):
        return super().forward(x, targets)


class OwnLoss(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **_):
        loss = model(inputs["x"])["loss"]
        return (loss, {}) if return_outputs else loss


def new_trainer(folder, data=None, model=None, kind=Trainer, arguments=None, **given):
    options = {"use_cpu": True, "max_steps": 3, "save_strategy": "no", "report_to": [], "disable_tqdm": True}
    data = data or [{"x": torch.ones(1), "labels": 1}] * 32
    made = TrainingArguments(folder, **{**options, **(arguments or {})})
    return kind(model or Model(), made, train_dataset=data, eval_dataset=data, **given)


def choose(folder, name, scores, **options):
    each = {"save_strategy": "steps", "save_steps": 1, STRATEGY: "steps", "eval_steps": 1}
    values = iter(scores)
    options = {**each, "load_best_model_at_end": True, "metric_for_best_model": name, **options}
    new_trainer(folder, arguments=options, compute_metrics=lambda _: {name: next(values)}).train()


def resume(folder, rate=0.1, callbacks=(), **options):
    first = {"save_strategy": "steps", "save_steps": 2, "learning_rate": 0.1, "max_steps": 2}
    new_trainer(folder, arguments=first).train()
    second = {**first, "max_steps": 4, "learning_rate": rate, **options}
    again = new_trainer(folder, arguments=second, callbacks=list(callbacks))
    again.train(resume_from_checkpoint=f"{folder}/checkpoint-2")


class SetRate(TrainerCallback):
    def on_train_begin(self, args, state, control, lr_scheduler=None, **_):
        lr_scheduler.base_lrs = [args.learning_rate] * len(lr_scheduler.base_lrs)


def stop_early(folder, scores, patience=3):
    def trainer(steps, values):
        each = {"save_strategy": "steps", "save_steps": 1, STRATEGY: "steps", "eval_steps": 1, "max_steps": steps}
        each.update(load_best_model_at_end=True, metric_for_best_model="score", greater_is_better=False)
        found = {"compute_metrics": lambda _: {"score": next(values)}}
        return new_trainer(folder, arguments=each, callbacks=[EarlyStoppingCallback(patience)], **found)

    trainer(len(scores), iter(scores)).train()
    trainer(len(scores) + 1, iter([0.5] * 2)).train(resume_from_checkpoint=f"{folder}/checkpoint-{len(scores)}")


def write(folder, length, **options):
    sizes = {"vocab_size": 8, "d_model": 8, "d_kv": 8, "d_ff": 8, "num_layers": 1, "num_heads": 1}
    model = T5ForConditionalGeneration(T5Config(**sizes, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0))
    model.generation_config.eos_token_id = None
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.shared.weight.zero_()
    model.generation_config.suppress_tokens = [0]
    base = {"use_cpu": True, "predict_with_generate": True, "report_to": [], "disable_tqdm": True}
    made = Seq2SeqTrainingArguments(folder, **base, **options)
    data = [{"input_ids": torch.arange(2, 8), "labels": torch.full((length,), 5)}] * 2
    Seq2SeqTrainer(model, made, eval_dataset=data, compute_metrics=lambda _: {"tokens": 0}).evaluate()


def call_gpt(mask, **given):
    model = GPT2LMHeadModel(GPT2Config(vocab_size=8, n_positions=16, n_embd=8, n_layer=1, n_head=1)).eval()
    mask = torch.tensor(mask)
    model(torch.full_like(mask, 3), attention_mask=mask, **given)
    return model, mask


def learn_gpt(ids, labels, mask=None):
    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=8, n_layer=1, n_head=1, pad_token_id=0)
    GPT2LMHeadModel(config)(input_ids=ids, labels=labels, attention_mask=mask).loss.backward()


def failing(folder):
    ids = torch.randint(1, 64, (2, 12))
    for _ in range(3):
        learn_gpt(ids[:, :-1], ids[:, 1:])
        learn_gpt(ids, ids, torch.zeros_like(ids))
    collate([{"input_ids": [3, 2]}, {"input_ids": [3, 4, 2]}], pad="</s>")
    collate([{"input_ids": [3, 4, 2], "labels": [-100, 4, 2]}])
    tokenizer = new_tokenizer()
    tokenizer(["<s> one two"])
    if "return_assistant_tokens_mask" in PreTrainedTokenizerFast.apply_chat_template.__wrapped__.__code__.co_varnames:
        options = {"tokenize": True, "return_dict": True, "return_assistant_tokens_mask": True}
        tokenizer.apply_chat_template(ANSWERED, **options)
    call_gpt([[0, 1, 1], [1, 1, 1]])
    new_trainer(folder, arguments={"lr_scheduler_type": "constant", "warmup_steps": 2}).train()
    masked = [{"x": torch.ones(1), "labels": torch.full((2,), -100)}] * 32
    new_trainer(folder, masked, arguments={}).train()
    choose(f"{folder}/chosen", "mae", [0.3, 0.2, 0.1])
    unnamed = [{"x": torch.ones(1), "targets": 1}] * 2
    new_trainer(folder, unnamed, Unnamed(), compute_metrics=lambda _: {}).evaluate()
    resume(f"{folder}/resumed", rate=0.01)
    stop_early(f"{folder}/stopped", [0.1, 0.5, 0.5])
    write(folder, 40)


def healthy_tokens():
    collate([{"input_ids": [3, 2]}, {"input_ids": [3, 4, 2]}])
    collate([{"input_ids": [2, 3]}, {"input_ids": [2, 3, 4]}], pad="</s>", bos="</s>")  # it begins each text
    collate([{"input_ids": [3, 4, 2, 2]}, {"input_ids": [3, 4, 3, 2]}], pad="</s>")  # may be padded, without a mask
    collate(
        [{"input_ids": [3, 2], "attention_mask": [1, 0]}, {"input_ids": [3, 4], "attention_mask": [1, 1]}], pad="</s>"
    )
    collate([{"input_ids": [3, 4, 2], "labels": [3, 4, 2]}])
    collate([{"input_ids": [3, 4, 2], "labels": 1}])
    DataCollatorForSeq2Seq(new_tokenizer())([{"input_ids": [3, 4, 2], "labels": [-100, 4, 2]}])
    tokenizer = new_tokenizer()
    tokenizer("one two")
    tokenizer(tokenizer.apply_chat_template(ANSWERED, tokenize=False), add_special_tokens=False)
    new_tokenizer(bos="</s>")("</s> one")
    options = {"tokenize": True, "return_dict": True}
    tokenizer.apply_chat_template(ANSWERED, **options)
    if "return_assistant_tokens_mask" in PreTrainedTokenizerFast.apply_chat_template.__wrapped__.__code__.co_varnames:
        tokenizer.apply_chat_template(ANSWERED[:1], return_assistant_tokens_mask=True, **options)
        tokenizer.apply_chat_template(ANSWERED, chat_template=MARKED, return_assistant_tokens_mask=True, **options)
    call_gpt([[1, 1, 0], [1, 1, 1]])
    model, mask = call_gpt([[0, 1, 1]], position_ids=torch.tensor([[0, 0, 1]]))
    model.generate(torch.full_like(mask, 3), attention_mask=mask, max_new_tokens=2, pad_token_id=0)


def healthy(folder):
    healthy_tokens()
    ids = torch.randint(1, 64, (2, 12))
    padded = torch.where(torch.arange(12) < 9, ids, 0)
    for _ in range(3):
        learn_gpt(ids, ids)
        learn_gpt(padded, torch.where(padded > 0, padded, -100), (padded > 0).long())
    new_trainer(folder, arguments={"lr_scheduler_type": "constant_with_warmup", "warmup_steps": 2}).train()
    new_trainer(folder, arguments={"lr_scheduler_type": "constant"}).train()
    some, ignored = ({"x": torch.ones(1), "labels": torch.tensor([-100, label])} for label in (1, -100))
    batches = {"per_device_train_batch_size": 1, "max_steps": 16}
    new_trainer(folder, [ignored, some] * 8, arguments=batches).train()
    new_trainer(folder, [ignored] * 32, kind=OwnLoss, arguments={"remove_unused_columns": False}).train()
    choose(f"{folder}/given", "mae", [0.3, 0.2, 0.1], greater_is_better=False)
    choose(f"{folder}/negated", "neg_mse", [-0.3, -0.2, -0.1])
    choose(f"{folder}/below_zero", "mse", [-0.3, -0.2, -0.1])
    choose(f"{folder}/accuracy", "error_f1", [0.3, 0.2, 0.1])
    new_trainer(folder, compute_metrics=lambda _: {"score": 1.0}).evaluate()
    unnamed = [{"x": torch.ones(1)}] * 2
    new_trainer(folder, compute_metrics=lambda _: {"score": 1.0}).predict(unnamed)
    resume(f"{folder}/same")
    resume(f"{folder}/set", rate=0.01, callbacks=[SetRate()])
    stop_early(f"{folder}/improved", [0.9, 0.7, 0.6])
    stop_early(f"{folder}/over", [0.1, 0.5, 0.5], patience=2)
    write(folder, 8)
    write(folder, 40, generation_max_length=24)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        {"failing": failing, "healthy": healthy}[sys.argv[1]](place)
