# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0202"
# title = "A script without a main guard starts itself again in each worker"
# kind = "misuse"
# documented = "https://docs.pytorch.org/docs/stable/data.html#platform-specific-behaviors"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/5858",
#     "https://github.com/pytorch/pytorch/issues/7485",
#     "https://github.com/pytorch/ignite/issues/3805",
#     "https://github.com/guoyang9/BPR-pytorch/issues/1",
#     "https://github.com/fastnlp/JointCwsParser/issues/2",
#     "https://github.com/facebookresearch/ClassyVision/issues/607",
#     "https://github.com/Project-MONAI/MONAI/issues/755",
#     "https://github.com/pyg-team/pytorch_geometric/issues/3363",
#     "https://github.com/patrickloeber/pytorch-chatbot/issues/2",
#     "https://github.com/Kaszanas/SC2_Datasets/issues/11",
# ]
# upstream.related = ["https://github.com/pytorch/pytorch/issues/169252"]
# packages = ["torch"]
# home = "2023-12"
# cold = ["auto"]
#
# [tool.repro.variants.failing]
# about = "a loader with a spawned worker in a script without a guard"
# raises = "RuntimeError"
# match = "exited unexpectedly"
#
# [tool.repro.variants.fixed]
# about = 'the same under `if __name__ == "__main__":`'
# source = "https://github.com/pytorch/ignite/issues/3805"
#
# [tool.repro.variants.forkserver]
# outcome = "fails"
# about = "forkserver, the default on Linux from Python 3.14 on"
#
# [tool.repro.variants.frozen]
# outcome = "fails"
# about = "freeze_support(), which the message names, without a guard"
# claim = "freeze_support() belongs to the idiom that a script needs"
# source = "https://github.com/awslabs/gluonts/issues/756"
#
# [tool.repro.variants.no_workers]
# outcome = "passes"
# about = "num_workers=0"
# source = "https://github.com/guoyang9/BPR-pytorch/issues/1"
#
# [tool.repro.variants.forked]
# outcome = "passes"
# about = 'multiprocessing_context="fork", the default on Linux up to Python 3.13'
# source = "https://github.com/pytorch/ignite/issues/3805"
# ///
"""A training at the top level of a script whose loader has workers.

Symptom: what the script prints first appears once more for each worker, then a RuntimeError about a new process that was
started before the current one "has finished its bootstrapping phase", and in the main process "DataLoader worker (pid(s)
N) exited unexpectedly"; on Windows a BrokenPipeError. With `num_workers=0`, or on Linux, it ran.

Cause: a worker that is spawned, or forked by the fork server, imports the main script under the name `__mp_main__` to
find what it has to unpickle. A script without a guard so begins its training again, and makes a loader with workers of
its own, which multiprocessing refuses. Windows and macOS spawn; Linux forked up to Python 3.13, and has a fork server as
its default from 3.14 on: scripts that always ran there meet it with the new Python, not with a new torch.

Fix: call what trains under `if __name__ == "__main__":`. `freeze_support()` in the message is for frozen executables
and changes nothing. Without workers, or forked, nothing is imported again.
"""

import sys
from multiprocessing import freeze_support

from torch.utils.data import DataLoader

DATA = range(2)


def failing():
    return DataLoader(DATA, num_workers=1, multiprocessing_context="spawn")


def fixed():  # under the guard, see the end of the script
    return failing()


def forkserver():
    return DataLoader(DATA, num_workers=1, multiprocessing_context="forkserver")


def frozen():
    freeze_support()
    return failing()


def no_workers():
    return DataLoader(DATA)


def forked():
    return DataLoader(DATA, num_workers=1, multiprocessing_context="fork")


VARIANTS = {v.__name__: v for v in (failing, fixed, forkserver, frozen, no_workers, forked)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    got = [batch.item() for batch in VARIANTS[variant]()]
    assert got == [0, 1], f"expected the samples [0, 1], got {got}"


if __name__ == "__mp_main__" and sys.argv[1:2] != ["fixed"]:  # in a worker: what has no guard runs again
    main(*sys.argv[1:])

if __name__ == "__main__":
    main(*sys.argv[1:])
