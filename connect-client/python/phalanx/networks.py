"""Modules that are often wanted."""

from typing import Sequence

import torch
from torch import Tensor, nn


def mlp(sizes: Sequence[int], dropout: float = 0.0) -> nn.Sequential:
    """Linear layers with rectifiers between them: `sizes` are the inputs, the hidden layers, the outputs."""
    layers: list = []
    for index, (num_in, num_out) in enumerate(zip(sizes, sizes[1:])):
        if index > 0:
            layers.append(nn.ReLU())
            if dropout > 0.0:
                layers.append(nn.Dropout(dropout))
        layers.append(nn.Linear(num_in, num_out))
    return nn.Sequential(*layers)


class Tabular(nn.Module):
    """Numbers, and categories that are embedded, through an MLP.

    `forward(numbers, categories)`: `[rows, num_numbers]`, and `[rows, len(cardinalities)]` of category numbers, integers or
    floats, such as `StringIndexer` gives and `VectorAssembler` or `array` puts together. A number that a column has no
    category for counts as its last one.
    """

    def __init__(
        self, num_numbers: int, cardinalities: Sequence[int], hidden: Sequence[int], num_outputs: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        widths = [min(50, (cardinality + 1) // 2) for cardinality in cardinalities]
        self.embeddings = nn.ModuleList(nn.Embedding(c, w) for c, w in zip(cardinalities, widths))
        self.register_buffer("last", torch.tensor([c - 1 for c in cardinalities], dtype=torch.int64))
        self.layers = mlp([num_numbers + sum(widths), *hidden, num_outputs], dropout)

    def forward(self, numbers: Tensor, categories: Tensor) -> Tensor:
        known = torch.minimum(categories.long().clamp(min=0), self.last)
        parts = [numbers]
        for index, embedding in enumerate(self.embeddings):
            parts.append(embedding(known[:, index]))
        return self.layers(torch.cat(parts, dim=1))
