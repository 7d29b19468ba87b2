"""Templates that use only torch."""

from __future__ import annotations

from repros.authoring.new.skeleton import ASSERT, Skeleton, join_code

PLAIN = Skeleton(
    join_code(
        "import sys\n\nimport torch\n",
        """\
def failing(device):
    return torch.tensor(2.0, device=device) + 1


def fixed(device):
    return torch.tensor(2.0, device=device) + 2
""",
        f"    got = VARIANTS[variant](torch.device(accelerator)).item()\n    {ASSERT}\n",
    )
)
LOADER = Skeleton(
    join_code(
        "import sys\n\nimport torch\nfrom torch.utils.data import DataLoader\n",
        """\
def failing(data):
    return DataLoader(data, batch_size=3, drop_last=True)


def fixed(data):
    return DataLoader(data, batch_size=3)
""",
        f"""    data = torch.ones(4, 1, device=accelerator)
    got = sum(batch.sum().item() for batch in VARIANTS[variant](data))
    {ASSERT}
""",
    )
)
CHECKPOINT = Skeleton(
    join_code(
        "import os\nimport sys\nimport tempfile\n\nimport torch\nfrom torch import nn\n",
        """\
def failing(layer, optimizer, state):
    layer.load_state_dict(state["layer"])


def fixed(layer, optimizer, state):
    layer.load_state_dict(state["layer"])
    optimizer.load_state_dict(state["optimizer"])


def make(device):
    layer = nn.Linear(1, 1, bias=False, device=device)
    nn.init.ones_(layer.weight)
    return layer, torch.optim.SGD(layer.parameters(), lr=1.0, momentum=1.0)


def step(layer, optimizer):
    layer.weight.grad = -torch.ones_like(layer.weight)
    optimizer.step()


def resume(load, path, device):
    layer, optimizer = make(device)
    step(layer, optimizer)
    torch.save({"layer": layer.state_dict(), "optimizer": optimizer.state_dict()}, path)
    layer, optimizer = make(device)
    load(layer, optimizer, torch.load(path))
    step(layer, optimizer)
    # With the momentum of the first step, the weight changes from 1 to 2 to 4.
    return layer.weight.item()
""",
        f"""    with tempfile.TemporaryDirectory() as folder:
        got = resume(VARIANTS[variant], os.path.join(folder, "last.ckpt"), accelerator)
    {ASSERT}
""",
    )
)
_TORCHRUN = """\
    if "RANK" in os.environ:
        train(VARIANTS[variant])
    else:  # without arguments: like `torchrun --nproc-per-node=2`
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])
"""
DDP = Skeleton(
    join_code(
        "import os\nimport sys\n\nimport torch\nfrom torch import distributed, nn\nfrom torch.distributed import run\n"
        "from torch.nn.parallel import DistributedDataParallel\n",
        """\
def failing(ddp, x):
    return ddp.module(x)


def fixed(ddp, x):
    return ddp(x)


def train(forward):
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    layer = nn.Linear(1, 1, bias=False)
    ddp = DistributedDataParallel(layer)
    # The output is w * x: the gradient of w is x, 3 on rank 0 and 5 on rank 1.
    forward(ddp, torch.full((1, 1), 3.0 + 2.0 * rank)).sum().backward()
    got = layer.weight.grad.item()
    assert got == 4.0, f"expected 4.0, got {got} on rank {rank}"
""",
        _TORCHRUN,
        "ddp",
    ),
    strategy="ddp",
    processes=2,
    match=("expected 4.0, got 3.0", "expected 4.0, got 5.0"),
)
FSDP = Skeleton(
    join_code(
        "import os\nimport sys\n\nimport torch\nfrom torch import distributed, nn\nfrom torch.distributed import run\n"
        "from torch.distributed.fsdp import fully_shard\n",
        """\
def failing(gradient):
    return gradient.to_local()


def fixed(gradient):
    return gradient.full_tensor()


def train(gather):
    distributed.init_process_group("gloo")
    mesh = distributed.init_device_mesh("cpu", (2,))
    layer = nn.Linear(1, 2, bias=False)
    fully_shard(layer, mesh=mesh)
    # The output is w * x: the gradient of each of the two weights is 2, and each rank has one of them.
    layer(torch.full((1, 1), 2.0)).sum().backward()
    got = gather(layer.weight.grad).sum().item()
    assert got == 4.0, f"expected 4.0, got {got} on rank {distributed.get_rank()}"
""",
        _TORCHRUN,
        "fsdp",
    ),
    ("torch>=2.6",),
    "fsdp",
    2,
    match="expected 4.0, got 2.0",
)
