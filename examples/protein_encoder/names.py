# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How encoders' parameters are called, and lie, in the files of others, and in Tessera's `Encoder` (tessera/nn/encoder.hpp).

    tensors = renamed(BERT, file, heads=8)          # {"blocks.0.attention.query": Tensor(512, 8, 1, 64), ...}

A row of a table is a name in the file, a name here, and a way from PyTorch's layout to Tessera's; {l} is a layer's number. A row
without a name here says that the tensor is left out. A tensor that no row names is an error.
"""
import re

from layouts import WAYS
from torch_file import FileFault


def norm(there, here):
    return [(there + ".weight", here + ".scale", "same"), (there + ".bias", here + ".bias", "same")]


def linear(there, here):
    return [(there + ".weight", here + ".weight", "linear"), (there + ".bias", here + ".bias", "same")]


def attention(query, key, value, out):
    rows, here = [], "blocks.{l}.attention."
    for there, name, way in ((query, "query", "query"), (key, "key", "key"), (value, "value", "key")):
        rows += [(there + ".weight", here + name, way), (there + ".bias", here + name + "_bias", way + " bias")]
    return rows + [(out + ".weight", here + "out", "out"), (out + ".bias", here + "out_bias", "same")]


def layer(prefix, attention_norm, second_norm):
    """The names of a layer in Hugging Face's encoders."""
    return (attention(*(prefix + "attention.self." + name for name in ("query", "key", "value")), prefix + "attention.output.dense") +
            norm(prefix + attention_norm, "blocks.{l}.attention_norm") + norm(prefix + second_norm, "blocks.{l}.feed_forward_norm") +
            linear(prefix + "intermediate.dense", "blocks.{l}.feed_forward.in") +
            linear(prefix + "output.dense", "blocks.{l}.feed_forward.out"))


def left_out(*names):
    return [(name, None, "same") for name in names]


TABLE = [("embeddings.word_embeddings.weight", "table.weight", "same"),
         ("embeddings.position_embeddings.weight", "positions.weight", "same"),
         ("embeddings.token_type_embeddings.weight", "kinds.weight", "same")]

# A decoder that has the embedding's table is left out; `renamed` checks that it is the table.
BERT = ([("bert." + there, *rest) for there, *rest in TABLE + norm("embeddings.LayerNorm", "input_norm")] +
        layer("bert.encoder.layer.{l}.", "attention.output.LayerNorm", "output.LayerNorm") +
        linear("cls.predictions.transform.dense", "head.dense") + norm("cls.predictions.transform.LayerNorm", "head.norm") +
        [("cls.predictions.bias", "head.bias", "same")] +
        left_out("bert.embeddings.position_ids", "bert.pooler.dense.weight", "bert.pooler.dense.bias", "cls.predictions.decoder.weight",
                 "cls.predictions.decoder.bias", "cls.seq_relationship.weight", "cls.seq_relationship.bias"))
# A BERT with further heads.
ANTIBERTY = BERT + left_out(*(f"cls.{head}.{part}" for head in ("species", "chain", "graft") for part in ("weight", "bias")))
# A BERT without a head, as sentence-transformers keep it.
BERT_BODY = [(there[len("bert."):], *rest) for there, *rest in BERT if there.startswith("bert.")]
ROBERTA_OF_FAIRSEQ = (
    [("embed_tokens.weight", "table.weight", "same"), ("embed_positions.weight", "positions.weight", "same")] +
    norm("emb_layer_norm", "input_norm") + attention(*(f"layers.{{l}}.self_attn.{n}_proj" for n in ("q", "k", "v", "out"))) +
    norm("layers.{l}.self_attn_layer_norm", "blocks.{l}.attention_norm") + linear("layers.{l}.fc1", "blocks.{l}.feed_forward.in") +
    linear("layers.{l}.fc2", "blocks.{l}.feed_forward.out") + norm("layers.{l}.final_layer_norm", "blocks.{l}.feed_forward_norm"))
ROBERTA_OF_FAIRSEQ = (
    [("decoder.sentence_encoder." + there, *rest) for there, *rest in ROBERTA_OF_FAIRSEQ] + linear("decoder.lm_head.dense", "head.dense") +
    norm("decoder.lm_head.layer_norm", "head.norm") + [("decoder.lm_head.bias", "head.bias", "same")] +
    left_out("decoder.lm_head.weight"))
ESM = ([("esm." + there, *rest) for there, *rest in TABLE] + layer("esm.encoder.layer.{l}.", "attention.LayerNorm", "LayerNorm") +
       norm("esm.encoder.emb_layer_norm_after", "norm") + linear("lm_head.dense", "head.dense") + norm("lm_head.layer_norm", "head.norm") +
       [("lm_head.bias", "head.bias", "same")] +
       left_out("esm.embeddings.position_ids", "lm_head.decoder.weight", "lm_head.decoder.bias",
                "esm.contact_head.regression.weight", "esm.contact_head.regression.bias", "esm.rotary_embeddings.inv_freq",
                "esm.encoder.layer.{l}.attention.self.rotary_embeddings.inv_freq"))

TIED = {"cls.predictions.decoder.weight": "table.weight", "cls.predictions.decoder.bias": "head.bias",
        "decoder.lm_head.weight": "table.weight", "lm_head.decoder.weight": "table.weight", "lm_head.decoder.bias": "head.bias"}


def renamed(rows, tensors, heads):
    """Returns the tensors by their names here, in the rows' order. Raises FileFault for a tensor that no row names, for a layer that
    lacks one, and for a decoder that is not the table."""
    patterns = [(re.compile(re.escape(there).replace(r"\{l\}", r"(\d+)")), here, way, i) for i, (there, here, way) in enumerate(rows)]
    made, order, decoders = {}, {}, {}
    for name, tensor in tensors.items():
        for pattern, here, way, place in patterns:
            found = pattern.fullmatch(name)
            if not found:
                continue
            if here is None:
                if name in TIED:
                    decoders[name] = tensor
                break
            number = found.group(1) if found.groups() else "0"
            own = here.replace("{l}", number)
            made[own] = WAYS[way](tensor, heads)
            order[own] = (int(number), place)
            break
        else:
            raise FileFault(f"it has the tensor {name} {list(tensor.shape)}, for which there is no name here; the tables of names.py "
                            "say which tensors a model has")
    layers = {n for (n, _), own in zip(order.values(), order) if own.startswith("blocks.")}
    for _, here, _ in rows:
        for number in sorted(layers) if here and "{l}" in here else ():
            if here.replace("{l}", str(number)) not in made:
                raise FileFault(f"it has no tensor for {here.replace('{l}', str(number))}, and other layers have one")
    for name, tensor in decoders.items():
        if made[TIED[name]].bytes() != tensor.bytes():
            raise FileFault(f"its {name} differs from its {TIED[name]}, and the two are one parameter here")
    return {own: made[own] for own in sorted(made, key=lambda own: order[own])}
