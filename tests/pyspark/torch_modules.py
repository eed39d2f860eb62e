"""TorchScript for tests, so that clients without PyTorch have some: python torch_modules.py writes it anew.

Parameters come from a formula, not from PyTorch's random numbers, so that tests can repeat a training by themselves.
"""

from __future__ import annotations

import pathlib
import zipfile

FOLDER = pathlib.Path(__file__).parent / "torch_modules"


def read(name: str) -> bytes:
    return (FOLDER / f"{name}.pt").read_bytes()


def write() -> None:
    import torch
    from torch import Tensor, nn

    def fill(module: nn.Module) -> nn.Module:
        """Small numbers, each parameter's by its place."""
        start = 0
        with torch.no_grad():
            for parameter in module.parameters():
                places = torch.arange(start, start + parameter.numel(), dtype=torch.float64)
                parameter.copy_((torch.sin(places * 12.9898) * 0.4).reshape(parameter.shape))
                start += parameter.numel()
        return module

    class Pair(nn.Module):
        """Numbers, and one category that is embedded, with what batch normalisation remembers."""

        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(4, 2)
            self.norm = nn.BatchNorm1d(3)
            self.out = nn.Linear(5, 1)

        def forward(self, numbers: Tensor, category: Tensor) -> Tensor:
            return self.out(torch.cat([self.norm(numbers), self.embedding(category)], dim=1))

    class Quartic(nn.Module):
        """A loss of one's own, a value a row."""

        def forward(self, output: Tensor, label: Tensor) -> Tensor:
            return (output.squeeze(1) - label) ** 4

    class Checked(nn.Module):
        """Fails for what it does not expect."""

        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            if bool((x > 100.0).any()):
                raise ValueError("a value above 100")
            return self.out(x)

    modules = {
        "mlp_2_8_2": nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)),
        "mlp_2_8_1": nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)),
        "pair": Pair(),
        "checked": Checked(),
        "quartic": Quartic(),
    }
    FOLDER.mkdir(exist_ok=True)
    for name, module in modules.items():
        path = FOLDER / f"{name}.pt"
        torch.jit.script(fill(module)).save(str(path))
        strip(path)


def strip(path: pathlib.Path) -> None:
    """Leaves out where in which files the source was: it is not needed, and differs by machine."""
    with zipfile.ZipFile(path) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist() if "debug_pkl" not in info.filename}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)


if __name__ == "__main__":
    write()
