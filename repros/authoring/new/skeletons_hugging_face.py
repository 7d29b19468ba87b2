"""Templates that use the libraries of Hugging Face."""

from __future__ import annotations

from repros.authoring.new.skeleton import ASSERT, Skeleton, join_code

ACCELERATE = Skeleton(
    join_code(
        "import sys\n\nimport torch\nfrom accelerate import Accelerator\nfrom torch import nn\n"
        "from torch.utils.data import DataLoader\n",
        """\
def failing(accelerator):
    return train(accelerator, samples=3)


def fixed(accelerator):
    return train(accelerator, samples=4)


def train(accelerator, samples):
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(torch.ones(samples, 1)))
    total = 0.0
    for batch in loader:
        accelerator.backward(model(batch).sum())
        optimizer.step()
        optimizer.zero_grad()
        total += batch.sum().item()
    return total
""",
        f'    got = VARIANTS[variant](Accelerator(cpu=accelerator == "cpu"))\n    {ASSERT}\n',
    ),
    ("torch>=2.0", "accelerate>=0.20"),
)
TRANSFORMERS = Skeleton(
    join_code(
        "import sys\nimport tempfile\n\n"
        "import torch\nfrom torch import nn\nfrom transformers import Trainer, TrainingArguments\n",
        """\
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.total = nn.Linear(1, 1), 0.0

    def forward(self, x):
        self.total += x.sum().item()
        return {"loss": self.layer(x).sum()}


def train(new_trainer, samples):
    model = Model()
    new_trainer(model, [{"x": torch.ones(1)} for _ in range(samples)]).train()
    return model.total


def failing(new_trainer):
    return train(new_trainer, samples=3)


def fixed(new_trainer):
    return train(new_trainer, samples=4)
""",
        f"""    with tempfile.TemporaryDirectory() as folder:

        def new_trainer(model, data):
            options = {{"num_train_epochs": 1, "report_to": [], "save_strategy": "no", "disable_tqdm": True}}
            arguments = TrainingArguments(folder, use_cpu=accelerator == "cpu", **options)
            return Trainer(model=model, args=arguments, train_dataset=data)

        got = VARIANTS[variant](new_trainer)
    {ASSERT}
""",
    ),
    ("torch>=2.0", "transformers>=4.36"),
)
PEFT = Skeleton(
    join_code(
        "import sys\n\nimport torch\nfrom peft import LoraConfig, get_peft_model\nfrom torch import nn\n",
        """\
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4, bias=False)

    def forward(self, x):
        return self.layer(x)


def adapt(rank):
    return get_peft_model(Model(), LoraConfig(r=rank, target_modules=["layer"]))


def failing():
    return adapt(rank=3)


def fixed():
    return adapt(rank=4)
""",
        f"""    model = VARIANTS[variant]().to(accelerator)
    model(torch.ones(1, 4, device=accelerator)).sum().backward()
    # lora_A and lora_B of rank 4 have 16 numbers each, and only they are trained.
    got = sum(p.numel() for p in model.parameters() if p.grad is not None) / 8
    {ASSERT}
""",
    ),
    ("torch>=2.0", "peft>=0.10"),
)
TRL = Skeleton(
    join_code(
        "import sys\nimport tempfile\n\n"
        "from datasets import Dataset\n"
        "from tokenizers import Tokenizer, models, pre_tokenizers\n"
        "from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast\n"
        "from trl import SFTConfig, SFTTrainer\n",
        """\
WORDS = ["<pad>", "</s>", "<unk>", "one", "two", "three"]


def new_tokenizer():
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def new_model():
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    return LlamaForCausalLM(LlamaConfig(vocab_size=len(WORDS), max_position_embeddings=16, **sizes))


def train(folder, cpu, samples):
    data = Dataset.from_dict({"text": ["one two three"] * samples})
    options = {"per_device_train_batch_size": 1, "report_to": [], "save_strategy": "no", "disable_tqdm": True}
    arguments = SFTConfig(folder, num_train_epochs=1, use_cpu=cpu, bf16=False, **options)
    trainer = SFTTrainer(model=new_model(), args=arguments, train_dataset=data, processing_class=new_tokenizer())
    trainer.train()
    return float(trainer.state.global_step)


def failing(folder, cpu):
    return train(folder, cpu, samples=3)


def fixed(folder, cpu):
    return train(folder, cpu, samples=4)
""",
        f"""    with tempfile.TemporaryDirectory() as folder:
        got = VARIANTS[variant](folder, accelerator == "cpu")
    {ASSERT}
""",
    ),
    ("torch>=2.0", "transformers>=4.46", "datasets>=3.0", "trl>=0.13"),
)
DATASETS = Skeleton(
    join_code(
        "import sys\n\nfrom datasets import Dataset\n",
        """\
def failing():
    return [row["x"] for row in Dataset.from_dict({"x": [1.0, 2.0]})]


def fixed():
    return [row["x"] for row in Dataset.from_dict({"x": [1.0, 3.0]})]
""",
        f"    got = sum(VARIANTS[variant]())\n    {ASSERT}\n",
    ),
    ("datasets>=2.18",),
)
