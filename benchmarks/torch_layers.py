# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Transformer that scripts of peers measure in PyTorch: norms before the layers, learned positions, gelu, no bias in attention.

    model = Transformer(words=256, places=256, embed=256, heads=8, hidden=1024, layers=4)
    scores = model(ids)                        # (batch, places, words): a step of training
    last = model(ids, model.kept(batch), 0)    # (batch, words), of the last place; keys and values are kept for what follows
"""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, embed, heads, hidden):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(embed), nn.LayerNorm(embed)
        self.joined, self.out = nn.Linear(embed, 3 * embed, bias=False), nn.Linear(embed, embed, bias=False)
        self.feed = nn.Sequential(nn.Linear(embed, hidden), nn.GELU(), nn.Linear(hidden, embed))

    def forward(self, x, kept=None, at=0):
        batch, new, embed = x.shape
        q, k, v = self.joined(self.first(x)).view(batch, new, 3, self.heads, embed // self.heads).permute(2, 0, 3, 1, 4)
        if kept is not None:
            kept[0][:, :, at:at + new] = k
            kept[1][:, :, at:at + new] = v
            k, v = kept[0][:, :, :at + new], kept[1][:, :, :at + new]
        heads = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=new > 1)
        x = x + self.out(heads.transpose(1, 2).reshape(batch, new, embed))
        return x + self.feed(self.second(x))


class Transformer(nn.Module):
    def __init__(self, words, places, embed, heads, hidden, layers):
        super().__init__()
        self.table, self.places = nn.Embedding(words, embed), nn.Parameter(0.1 * torch.randn(places, embed))
        self.blocks = nn.ModuleList(Block(embed, heads, hidden) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(embed), nn.Linear(embed, words)

    def kept(self, batch):
        """Returns room for the keys and values of a batch, all places of it."""
        places, embed = self.places.shape
        heads = self.blocks[0].heads
        return [[torch.zeros(batch, heads, places, embed // heads) for _ in range(2)] for _ in self.blocks]

    def forward(self, ids, kept=None, at=0):
        if kept is None:
            x = self.table(ids) + self.places
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))
        x = self.table(ids) + self.places[at:at + ids.shape[1]]
        for block, own in zip(self.blocks, kept):
            x = block(x, own, at)
        return self.head(self.norm(x[:, -1]))
