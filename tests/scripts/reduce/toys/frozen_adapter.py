"""LoRA fine-tuning of a small causal language model with gradient checkpointing."""

import argparse
import json
import logging
import math

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader, Dataset
from transformers import LlamaConfig, LlamaForCausalLM, get_cosine_schedule_with_warmup

logging.basicConfig(level=logging.INFO)
logger = logging.getLogger(__name__)

PROMPTS = [
    ("Which colour has the sky?", "It is blue."),
    ("How many legs has a spider?", "It has eight."),
    ("What is two times three?", "It is six."),
    ("Who wrote Faust?", "It was Goethe."),
]


class Dialogues(Dataset):
    def __init__(self, pairs, length=32):
        self.rows = []
        for question, answer in pairs:
            prompt = [byte % 120 + 3 for byte in question.encode()][: length // 2]
            reply = [byte % 120 + 3 for byte in answer.encode()][: length // 2]
            ids = (prompt + reply + [2])[:length]
            labels = ([-100] * len(prompt) + reply + [2])[:length]
            padding = length - len(ids)
            self.rows.append((ids + [0] * padding, labels + [-100] * padding, [1] * len(ids) + [0] * padding))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        ids, labels, mask = map(torch.tensor, self.rows[index])
        return {"input_ids": ids, "labels": labels, "attention_mask": mask}


def build_model(args):
    config = LlamaConfig(
        vocab_size=128,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=64,
    )
    model = LlamaForCausalLM(config)
    model.config.use_cache = False
    lora = LoraConfig(
        r=args.rank,
        lora_alpha=2 * args.rank,
        lora_dropout=0.05,
        target_modules=["q_proj", "v_proj"],
        bias="none",
        task_type="CAUSAL_LM",
    )
    model = get_peft_model(model, lora)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
    model.print_trainable_parameters()
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2e-4)
    args = parser.parse_args()
    logger.info("arguments: %s", json.dumps(vars(args)))
    torch.manual_seed(0)
    model = build_model(args)
    model.train()
    loader = DataLoader(Dialogues(PROMPTS), batch_size=args.batch_size, shuffle=True)
    steps = args.epochs * math.ceil(len(PROMPTS) / args.batch_size)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=args.lr)
    schedule = get_cosine_schedule_with_warmup(optimizer, steps // 10, steps)
    for epoch in range(args.epochs):
        for step, batch in enumerate(loader):
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            logger.info("epoch %d step %d loss %.4f", epoch, step, loss.item())
    model.save_pretrained("adapter")


if __name__ == "__main__":
    main()
