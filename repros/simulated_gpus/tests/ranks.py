"""Rank processes that are reused by many tests: starting them takes a second, a call is cheap.

A call sends a function of a test module and its arguments to every rank, pickled, and receives the results. Tensors are
sent as `Bits`, because a tensor in a pipe would be shared memory of a process that may have ended.
"""

from __future__ import annotations

import datetime as dt
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = dt.timedelta(seconds=15)  # the process group's
LONG = 90.0  # seconds, enough for ranks to start and for a process group to time out


class Bits(NamedTuple):
    """A tensor's bits."""

    dtype: str
    shape: tuple[int, ...]
    device: str
    content: bytes

    @classmethod
    def of(cls, tensor: Any) -> Bits:
        import torch

        host = tensor.detach().cpu().contiguous().reshape(-1)
        content = bytes(host.view(torch.uint8).tolist())
        return cls(str(tensor.dtype), tuple(tensor.shape), tensor.device.type, content)


class RankFailedError(Exception):
    """A rank raised an exception, or has ended."""

    def __init__(self, rank: int, kind: str, message: str, trace: str) -> None:
        super().__init__(f"rank {rank}: {kind}: {message}\n{trace}")
        self.rank = rank
        self.kind = kind
        self.message = message


class Ranks:
    """`size` processes in a process group of `backend`, each with its own current sim device."""

    def __init__(
        self, size: int, folder: Path, *, backend: str = "nccl", timeout: dt.timedelta = PATIENCE, bound: bool = False
    ) -> None:
        context = multiprocessing.get_context("forkserver")  # which imports torch once, and touches no device
        context.set_forkserver_preload(["torch", "torch.distributed", "pytest"])
        folder.mkdir(parents=True, exist_ok=True)
        self.size = size
        self._pipes = []
        self._processes = []
        self._lost: RankFailedError | None = None
        for rank in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs, rank, size, str(folder), backend, timeout, bound), daemon=True
            )
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def call(self, function: Callable[..., Any], *arguments: Any, only: Iterable[int] | None = None) -> list[Any]:
        """Return the results of `function(rank, *arguments)` in all ranks, or in those of `only`.

        Raises:
            RankFailedError: a rank raised; if several did, the lowest one. After a rank that does not answer, every
                further call raises.
        """
        if self._lost is not None:
            raise self._lost
        chosen = list(range(self.size) if only is None else only)
        for rank in chosen:
            self._pipes[rank].send((function, arguments))
        deadline = time.monotonic() + LONG
        answers = [self._answer(rank, deadline) for rank in chosen]
        for rank, (done, answer) in zip(chosen, answers):  # `strict` is from Python 3.10
            if not done:
                failure = RankFailedError(rank, *answer)
                if failure.kind in {"TimeoutError", "EOFError"}:
                    self._lost = failure
                raise failure
        return [answer for _, answer in answers]

    def _answer(self, rank: int, deadline: float) -> Any:
        pipe = self._pipes[rank]
        if not pipe.poll(max(0.0, deadline - time.monotonic())):
            return False, ("TimeoutError", "no answer", "")
        try:
            return pipe.recv()
        except (EOFError, ConnectionResetError):  # reset: it left a request unread
            return False, ("EOFError", "the process is gone", "")

    def kill(self, rank: int) -> None:
        """Kill a rank, as the out-of-memory killer does."""
        self._processes[rank].kill()
        self._processes[rank].join()

    def close(self) -> None:
        """End all ranks."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()


def _serve(pipe: Any, rank: int, size: int, folder: str, backend: str, timeout: dt.timedelta, bound: bool) -> None:
    os.environ["REPROS_SIM_DEVICES"] = str(max(size, 2))
    import torch

    torch.cuda.set_device(rank)
    torch.set_num_threads(1)
    options: dict[str, Any] = {"device_id": torch.device("cuda", rank)} if bound else {}
    rendezvous = f"file://{folder}/rendezvous"
    torch.distributed.init_process_group(
        backend, init_method=rendezvous, rank=rank, world_size=size, timeout=timeout, **options
    )
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            break
        try:
            answer = (True, function(rank, *arguments))
        except Exception as error:  # any exception is an answer
            answer = (False, (type(error).__name__, str(error), traceback.format_exc()))
        pipe.send(answer)
    sys.stdout.flush()
    os._exit(0)  # a broken process group must not keep the process alive


def first_error(call: Any) -> str:
    """Return the first line of the error that a call raises, or `nothing`."""
    try:
        call()
    except (RuntimeError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return "nothing"


def ones(*shape: int, dtype: Any = None, device: str = "cuda") -> Any:
    """Return a tensor of ones on a device."""
    import torch

    return torch.ones(shape or (2,), dtype=dtype, device=device)
