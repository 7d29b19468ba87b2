"""Bridge for safetensors, with which accelerate and transformers read files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .bridge import Bridge, wrap

if TYPE_CHECKING:
    import torch


class _File:
    """An open file whose tensors are loaded to a sim device."""

    def __init__(self, file: Any, device: Any) -> None:
        self._file, self._device = file, device

    def __enter__(self) -> _File:  # noqa: PYI034 # typing.Self is from Python 3.11
        self._file.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.__exit__(*raised)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def get_tensor(self, name: str) -> torch.Tensor:
        return self._file.get_tensor(name).to(self._device)

    def get_tensors(self) -> dict[str, torch.Tensor]:
        return {name: tensor.to(self._device) for name, tensor in self._file.get_tensors().items()}

    def get_slice(self, name: str) -> _Slice:
        return _Slice(self._file.get_slice(name), self._device)


class _Slice:
    """A tensor in an open file, of which a part is loaded."""

    def __init__(self, part: Any, device: Any) -> None:
        self._part, self._device = part, device

    def __getitem__(self, index: Any) -> torch.Tensor:
        return self._part[index].to(self._device)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)


def _open_for_sim(module: Any) -> None:
    def safe_open(original: Any, filename: Any, framework: str, device: Any = "cpu", **settings: Any) -> Any:
        if not str(device).startswith("sim"):
            return original(filename, framework, device=device, **settings)
        return _File(original(filename, framework, device="cpu", **settings), device)

    wrap(module, "safe_open", safe_open)


BRIDGES = (
    Bridge(
        "safetensors: a file for a device",
        ("safetensors",),
        "safe_open is compiled and lists its devices; for any other it raises `device ... is invalid`",
        "0.4.1 to 0.8.0",
        _open_for_sim,
    ),
)
