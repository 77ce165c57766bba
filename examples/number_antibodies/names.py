# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the parameters of anarcii's models are called there, and in Tessera's `Translator` (tessera/nn/translation/translator.hpp).

    tensors = renamed(file, heads=4)                # {"source.weight": Tensor(25, 128), "encoder.blocks.0.attention.query": ...}

Queries, keys and values are one matrix there, one after the other.
"""
from layouts import WAYS
from torch_file import FileFault, Tensor


def thirds(tensor):
    """Returns three tensors, each of a third of the rows."""
    rows = tensor.shape[0] // 3
    return [Tensor(tensor.kind, tensor.storage, tensor.offset + i * rows * tensor.strides[0], (rows, *tensor.shape[1:]), tensor.strides)
            for i in range(3)]


def renamed(file, heads):
    """Returns the tensors by their names here. Raises FileFault where one is missing, and where there is one too many."""
    left, made = dict(file), {}

    def take(there):
        if there not in left:
            raise FileFault(f"it has no tensor {there}, which anarcii's models have")
        return left.pop(there)

    def move(there, here, way="same"):
        made[here] = WAYS[way](take(there), heads)

    def move_attention(there, here):
        for part, suffix in (("weight", ""), ("bias", "_bias")):
            of_three = thirds(take(f"{there}.in_proj_{part}"))
            for name, tensor in zip(("query", "key", "value"), of_three):
                way = ("query" if name == "query" else "key") + suffix.replace("_", " ")
                made[f"{here}.{name}{suffix}"] = WAYS[way](tensor, heads)
        move(f"{there}.out_proj.weight", f"{here}.out", "out")
        move(f"{there}.out_proj.bias", f"{here}.out_bias")

    def move_norm(there, here):
        move(f"{there}.weight", f"{here}.scale")
        move(f"{there}.bias", f"{here}.bias")

    def move_linear(there, here):
        move(f"{there}.weight", f"{here}.weight", "linear")
        move(f"{there}.bias", f"{here}.bias")

    for side, table in (("encoder", "source"), ("decoder", "target")):
        move(f"{side}.tok_embedding.weight", f"{table}.weight")
        move(f"{side}.pos_embedding.weight", f"{side}.positions.weight")
        for layer in range(layers_of(file, side)):
            there, here = f"{side}.layers.{layer}", f"{side}.blocks.{layer}"
            move_attention(f"{there}.self_attention.multihead_attn", f"{here}.attention")
            move_norm(f"{there}.self_attn_layer_norm", f"{here}.attention_norm")
            if side == "decoder":
                move_attention(f"{there}.encoder_attention.multihead_attn", f"{here}.source_attention")
                move_norm(f"{there}.enc_attn_layer_norm", f"{here}.source_norm")
            move_norm(f"{there}.ff_layer_norm", f"{here}.feed_forward_norm")
            move_linear(f"{there}.positionwise_feedforward.fc_1", f"{here}.feed_forward.in")
            move_linear(f"{there}.positionwise_feedforward.fc_2", f"{here}.feed_forward.out")
    move_linear("decoder.fc_out", "head")
    if left:
        name, tensor = next(iter(left.items()))
        raise FileFault(f"it has the tensor {name} {list(tensor.shape)}, for which there is no name here")
    return made


def layers_of(file, side):
    numbers = [int(name.split(".")[2]) for name in file if name.startswith(f"{side}.layers.")]
    return 1 + max(numbers, default=-1)
