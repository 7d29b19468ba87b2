"""Programs with adapters of PEFT: `failing`, one for each check, and `healthy` ones, which do nearly the same.

All of a kind run in one process, since importing the library takes most of the time.
"""

from __future__ import annotations

import sys
import tempfile

import torch
from peft import (
    LoraConfig,
    PeftModel,
    get_peft_model,
    get_peft_model_state_dict,
    prepare_model_for_kbit_training,
    set_peft_model_state_dict,
)
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification

SIZES = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
TOKENS = torch.tensor([[1, 2, 3, 4]])
LORA = LoraConfig(r=2, target_modules=["q_proj", "v_proj"])
NEW = 8


def new_llama(vocabulary=NEW, kind=LlamaForCausalLM, **options):
    return kind(LlamaConfig(vocab_size=vocabulary, use_cache=False, **SIZES, **options))


class Model(nn.Module):
    """Two layers, the first of which may be in a reentrant checkpoint."""

    is_gradient_checkpointing = False
    is_reentrant = True

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        if self.is_gradient_checkpointing:
            return self.head(checkpoint(self.layer, x, use_reentrant=self.is_reentrant))
        return self.head(self.layer(x))


def adapt(model=None, **options):
    config = {"r": 1, "target_modules": ["layer"], **options}
    return get_peft_model(model or Model(), LoraConfig(**config))


def train(model, optimizer, inputs=None, steps=1):
    for _ in range(steps):
        model(torch.ones(2, 4) if inputs is None else inputs).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def trainable(model):
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


def save(folder, model=None):
    (model or adapt()).save_pretrained(folder)
    return folder


# What is trained


def frozen(prepare):
    model = get_peft_model(new_llama(), LORA)
    prepare(model)
    model.enable_input_require_grads()
    model.train()
    model(input_ids=TOKENS, labels=TOKENS).loss.backward()


def frozen_on_purpose():
    model = get_peft_model(new_llama(), LORA)
    model.requires_grad_(requires_grad=False)
    model.enable_input_require_grads()
    model.eval()(input_ids=TOKENS, labels=TOKENS).loss.backward()  # what the inputs contribute
    head = nn.Linear(NEW, 1)
    head(model.train()(input_ids=TOKENS).logits).sum().backward()  # a probe


def reference_without_adapter():
    model = get_peft_model(new_llama(), LORA)
    model.enable_input_require_grads()
    model.train()
    with model.disable_adapter():
        reference = model(input_ids=TOKENS).logits
    (model(input_ids=TOKENS).logits - reference).sum().backward()


def checkpointed(*, is_reentrant=True, requires_grad=False):
    base = Model()
    base.is_gradient_checkpointing, base.is_reentrant = True, is_reentrant
    base.enable_input_require_grads = lambda: None
    model = adapt(base, modules_to_save=["head"])
    model.train()(torch.ones(2, 4, requires_grad=requires_grad)).sum().backward()


def bypassed():
    layer = nn.TransformerEncoderLayer(d_model=8, nhead=1, dim_feedforward=8, batch_first=True)
    model = adapt(layer, target_modules=["out_proj", "linear1"])
    model(torch.randn(1, 3, 8)).sum().backward()


class Experts(nn.Module):
    """Two layers, of which one is called; and an attention that is not."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.attention = nn.MultiheadAttention(4, 1)

    def forward(self, x):
        return self.first(x)


def not_called():
    model = adapt(Experts(), target_modules=["first", "second", "attention.out_proj"])
    train(model, sgd(trainable(model)), steps=3)


def second_adapter(parameters):
    model = adapt()
    model.add_adapter("second", LoraConfig(r=1, target_modules=["layer"]))
    optimizer = sgd(parameters(model))
    model.set_adapter("second")
    return model, optimizer


def held_by_another():
    model, first = second_adapter(trainable)
    second = sgd(trainable(model))
    model(torch.ones(2, 4)).sum().backward()
    first.step()
    second.step()


# What is loaded and saved


def wrapped_twice(folder):
    return PeftModel.from_pretrained(adapt(), save(folder))


def replaced(folder):
    adapt(PeftModel.from_pretrained(Model(), save(folder)))


def load_well(folder):
    save(folder)
    PeftModel.from_pretrained(Model(), folder, is_trainable=True)(torch.ones(1, 4)).sum().backward()
    model = adapt()
    model.load_adapter(folder, "default")
    model.load_adapter(folder, "second")
    model.set_adapter("second")
    state = get_peft_model_state_dict(model, adapter_name="second")
    set_peft_model_state_dict(model, {f"module.{name}": value for name, value in state.items()}, "second")
    set_peft_model_state_dict(model, state, "second")  # the second try has the right names
    model(torch.ones(1, 4))
    adapt(adapt())  # a new one in the place of a new one
    used = PeftModel.from_pretrained(Model(), folder)
    used(torch.ones(1, 4))
    adapt(used)


def save_well(folder):
    adapt().save_pretrained(folder, safe_serialization=False)
    model = adapt()
    model.add_adapter("second", LoraConfig(r=1, target_modules=["layer"]))
    model.save_pretrained(folder)


def load_frozen_after_training(folder):
    model = adapt()
    train(model, sgd(trainable(model)), steps=2)
    model.load_adapter(save(folder), "other")
    model.eval()(torch.ones(1, 4))


# What is merged


def merge(model):
    model = get_peft_model(model, LoraConfig(r=2, target_modules=["lm_head"], init_lora_weights=False))
    model.merge_and_unload()


def merge_well():
    merge(new_llama(tie_word_embeddings=False))
    tied = new_llama(tie_word_embeddings=True)
    get_peft_model(tied, LoraConfig(r=2, target_modules=["lm_head"])).merge_and_unload()  # it changes nothing yet
    model = get_peft_model(tied, LoraConfig(r=2, target_modules=["lm_head"], init_lora_weights=False))
    model.unload()
    model = get_peft_model(tied, LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
    model.merge_and_unload()


# What is new


def learn_new_tokens(labels=None, prepare=None, pad=None, **options):
    base = new_llama()
    base.resize_token_embeddings(NEW + 1)
    base.config.pad_token_id = pad
    if prepare is not None:
        prepare(base)
    model = get_peft_model(base, LoraConfig(target_modules=["q_proj"], **options)).train()
    tokens = torch.tensor([[1, NEW, 2, NEW]])
    model(input_ids=tokens, labels=tokens if labels is None else torch.tensor([labels])).loss.backward()


def write_rows(base):
    with torch.no_grad():
        for part in (base.get_input_embeddings(), base.get_output_embeddings()):
            part.weight[NEW:] = part.weight[1]  # a word that means nearly the same


def classify(folder, base=None, **options):
    base = base or new_llama(kind=LlamaForSequenceClassification, num_labels=2)
    model = get_peft_model(base, LoraConfig(target_modules=["q_proj"], **options))
    model.save_pretrained(folder)
    return model


def classify_well(folder):
    base = new_llama(kind=LlamaForSequenceClassification, num_labels=2)
    classify(folder, modules_to_save=["score"])
    classify(folder, task_type="SEQ_CLS")
    base.save_pretrained(f"{folder}/trained")
    trained = LlamaForSequenceClassification.from_pretrained(f"{folder}/trained")
    classify(folder, trained)
    model = classify(folder, new_llama(kind=LlamaForSequenceClassification, num_labels=3))
    model.base_model.model.score.requires_grad_(requires_grad=True)
    torch.save(model.base_model.model.score.state_dict(), f"{folder}/head.pt")


def failing(folder):
    frozen(lambda model: model.requires_grad_(requires_grad=False))
    frozen(prepare_model_for_kbit_training)
    checkpointed()
    bypassed()
    adapted = wrapped_twice(f"{folder}/twice")
    replaced(f"{folder}/replaced")  # before the first step: later a training may have used it
    train(*second_adapter(trainable))
    adapt().save_pretrained(f"{folder}/empty", state_dict={})
    model = PeftModel.from_pretrained(Model(), save(f"{folder}/frozen"))
    model.load_adapter(f"{folder}/frozen", "other", is_trainable=True)
    merge(new_llama(tie_word_embeddings=True))
    learn_new_tokens()
    classify(f"{folder}/classifier")
    del adapted


def healthy(folder):
    frozen_on_purpose()
    reference_without_adapter()
    checkpointed(is_reentrant=False)
    checkpointed(requires_grad=True)
    load_well(f"{folder}/loaded")
    save_well(f"{folder}/saved")
    merge_well()
    learn_new_tokens(modules_to_save=["embed_tokens", "lm_head"])
    learn_new_tokens(labels=[1, -100, 2, -100])
    learn_new_tokens(pad=NEW)
    learn_new_tokens(prepare=write_rows)
    classify_well(f"{folder}/classifiers")
    not_called()
    train(*second_adapter(nn.Module.parameters))
    held_by_another()
    load_frozen_after_training(f"{folder}/after")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        {"failing": failing, "healthy": healthy}[sys.argv[1]](place)
