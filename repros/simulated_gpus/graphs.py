"""CUDA graphs: `torch._C._CUDAGraph`, whose calls the extension records and replays."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

from . import extension
from .refused import refusing

_RAW = "a simulated GPU's graph is no cudaGraph_t; replay it"
_CONDITIONAL = "conditional nodes of CUDA graphs are not simulated; capture one graph for each case"
_NO_POOL = (0, 0)
_numbers = itertools.count(1)


def functions() -> dict[str, Any]:
    """Return the functions and classes of `torch._C` for CUDA graphs."""
    return {
        "_CUDAGraph": _CUDAGraph,
        "_graph_pool_handle": lambda: (0, next(_numbers)),
        "_cuda_isCurrentStreamCapturing": lambda: extension.get().is_capturing(),
    }


class _CUDAGraph:
    """A graph, in the words of ATen/cuda/CUDAGraph.cpp.

    A captured call that CUDA does not permit ends the capture: the call raises, and so does the end of the capture.
    """

    _graph: Any
    _pool: tuple[int, int]
    _keeps_template: bool
    _has_graph_exec: bool

    def __new__(cls, keep_graph: bool = False) -> Any:
        made = super().__new__(cls)
        made._graph = extension.get().Graph()
        made._pool, made._keeps_template, made._has_graph_exec = _NO_POOL, keep_graph, False
        return made

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        given = _NO_POOL if pool is None else tuple(pool)
        self._graph.capture_begin()
        self._pool = (next(_numbers), 0) if given == _NO_POOL else given

    def capture_end(self) -> None:
        self._graph.capture_end()
        self._has_graph_exec = not self._keeps_template

    def capture_end_pre(self) -> None:
        self._graph.capture_end()

    def capture_end_post(self) -> None:
        pass

    def instantiate(self) -> None:
        if not self._graph.is_captured():
            raise RuntimeError("capture_end() must have been called before calling instantiate")
        if self._has_graph_exec and not self._keeps_template:
            raise RuntimeError("instantiate() is intended to be called by the user only when keep_graph=true")
        self._has_graph_exec = True

    def replay(self) -> None:
        self._graph.replay()

    def reset(self) -> None:
        self._graph.reset()
        self._pool, self._has_graph_exec = _NO_POOL, False

    def pool(self) -> tuple[int, int]:
        if not self._graph.is_captured():
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool

    def pools(self) -> list[tuple[int, int]]:
        return [self.pool()]

    def register_generator_state(self, generator: Any) -> None:
        self._graph.register_generator(generator)

    def enable_debug_mode(self) -> None:
        pass

    def debug_dump(self, _path: str) -> None:
        warnings.warn(f"nothing is written: {_RAW}", UserWarning, stacklevel=3)

    raw_cuda_graph = refusing(_RAW)
    raw_cuda_graph_exec = refusing(_RAW)
    begin_capture_to_if_node = refusing(_CONDITIONAL)
    begin_capture_to_while_node = refusing(_CONDITIONAL)
    end_capture_to_conditional_node = refusing(_CONDITIONAL)
    set_conditional_handle_for_current_node = refusing(_CONDITIONAL)
