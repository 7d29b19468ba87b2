# /// script
# dependencies = ["torch>=2.0", "transformers>=4.44", "datasets>=3.0", "peft>=0.12", "trl>=0.11"]
#
# [tool.repro]
# id = "RPR-0139"
# title = "DPO on a fine-tuned adapter takes the bare base model as its reference"
# kind = "by design"
# documented = "https://huggingface.co/docs/trl/v0.14.0/en/dpo_trainer"
# upstream.reports = [
#     "https://github.com/hiyouga/LlamaFactory/issues/8459",
#     "https://github.com/hiyouga/LlamaFactory/issues/8974",
#     "https://github.com/huggingface/trl/issues/1365",
#     "https://github.com/huggingface/trl/pull/1193",
# ]
# upstream.fixed_by = ["https://github.com/huggingface/trl/pull/3906"]
# upstream.related = ["https://github.com/huggingface/trl/pull/4723"]
# packages = ["trl"]
# affected = ["trl<0.29"]
# requires = ["trl>=0.11"]
# home = "2025-11"
# silent = true
# finds = ["reference_without_adapter"]
#
# [tool.repro.variants.failing]
# about = "DPOTrainer on the PeftModel, without a ref_model"
# raises = "AssertionError"
# match = "expected the first loss to be 0.6931, got 0.6888"
#
# [tool.repro.variants.fixed]
# about = "merge_and_unload, then a new adapter through peft_config"
# source = "https://github.com/huggingface/trl/pull/1193"
#
# [tool.repro.variants.second_adapter]
# outcome = "passes"
# about = "the adapter loaded once more as ref_adapter_name"
# source = "https://github.com/huggingface/trl/pull/1193"
# requires = ["trl>=0.11,<0.29"]
#
# [tool.repro.variants.base_as_reference]
# outcome = "fails"
# about = "a second base model as ref_model"
# affected = []
# ///
"""Preferences are trained against the model of before the fine-tuning.

Symptom: the first loss is not ln 2 = 0.6931 and the first rewards are not 0; the KL penalty pulls back to the base. Silent.

Cause: for a `PeftModel` without a `ref_model`, `DPOTrainer` computes the reference with the adapter disabled. That is the
model at the start of the training only if the adapter is new. An adapter of an SFT is not.

Fix: TRL 0.29 copies the adapter as "ref". Before: merge it first, or load it twice and name the second one in
`ref_adapter_name`.
"""

import inspect
import sys
import tempfile

import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel, get_peft_model
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer

WORDS = ["<pad>", "</s>", "<unk>", "one", "two", "three"]
LORA = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False, task_type="CAUSAL_LM")


def new_base():
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    return LlamaForCausalLM(LlamaConfig(vocab_size=len(WORDS), initializer_range=1.0, **sizes))


def failing(new_trainer, adapter):
    return new_trainer(PeftModel.from_pretrained(new_base(), adapter, is_trainable=True))


def fixed(new_trainer, adapter):
    merged = PeftModel.from_pretrained(new_base(), adapter).merge_and_unload()
    config = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    return new_trainer(merged, peft_config=config)


def second_adapter(new_trainer, adapter):
    model = PeftModel.from_pretrained(new_base(), adapter, is_trainable=True)
    model.load_adapter(adapter, adapter_name="reference")
    model.set_adapter("default")
    return new_trainer(model, ref_adapter_name="reference")


def base_as_reference(new_trainer, adapter):
    return new_trainer(PeftModel.from_pretrained(new_base(), adapter, is_trainable=True), ref_model=new_base())


VARIANTS = {v.__name__: v for v in (failing, fixed, second_adapter, base_as_reference)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, **names)
    accepted = inspect.signature(DPOTrainer.__init__).parameters
    tokenizer = {"processing_class" if "processing_class" in accepted else "tokenizer": tokenizer}
    data = Dataset.from_dict({"prompt": ["one "], "chosen": ["two"], "rejected": ["three"]})

    def new_trainer(model, ref_model=None, peft_config=None, **options):
        options.update(report_to=[], save_strategy="no", disable_tqdm=True, logging_steps=1, max_steps=1)
        arguments = DPOConfig(folder, use_cpu=accelerator == "cpu", bf16=False, **options)
        options = {"ref_model": ref_model, "peft_config": peft_config, **tokenizer}
        return DPOTrainer(model, args=arguments, train_dataset=data, **options)

    with tempfile.TemporaryDirectory() as folder:
        get_peft_model(new_base(), LORA).save_pretrained(folder)
        trainer = VARIANTS[variant](new_trainer, folder)
        trainer.train()
    # Model and reference are the same before the first step: the loss is -log(sigmoid(0)) = log(2).
    got = round(next(row["loss"] for row in trainer.state.log_history if "loss" in row), 4)
    assert got == 0.6931, f"expected the first loss to be 0.6931, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
