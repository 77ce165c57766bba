# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what small encoder-decoders of Hugging Face and their gradients are, in double: tests/nn/translation_of_hugging_face/*.safetensors,
which tests/nn/translation.loopback.cpp reads.

    python3 tests/nn/translation_of_hugging_face/generate.py        # needs torch and transformers; written by 2.15 and 5.24

A file has a model's parameters by the names of Translator's fields; gradient.…, the gradients of the loss by them; and ids, masks, the
encoder's states, the scores and the loss: the mean over valid places of the smoothed cross-entropy. States and scores at places that
are not valid are zeros here. What T5 leaves out, 1 / sqrt(head_dim) of scores, and what it has beside, 1 / sqrt(d_model) of the last states,
are put into its weights. t5.safetensors also has T5's buckets of the distances -200 to 200.
"""
import math
import os
import sys

import torch
from transformers import BartConfig, BartForConditionalGeneration, T5Config, T5ForConditionalGeneration
from transformers.models.t5.modeling_t5 import T5Attention

DISTANCES = torch.arange(-200, 201)  # T5 counts buckets in float
BUCKETS = {f"buckets.{name}": T5Attention._relative_position_bucket(DISTANCES, both, 32, 128).int()
           for name, both in (("both_ways", True), ("before", False))}
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from hugging_face import own, with_drawn_parameters, write  # noqa: E402

SOURCE, TARGET = [6, 2, 5], [3, 4, 1]
SMOOTHING = 0.1


def attention_rows(to, theirs, heads, names, factor=1.0):
    """Rows (own name, their name, how, factor) of an attention, with `names` for q, k, v and out."""
    for own_name, name in zip(("query", "key", "value", "out"), names):
        yield f"{to}.{own_name}", f"{theirs}.{name}.weight", ("heads_" if own_name != "out" else "out_") + own_name, (
            factor if own_name == "query" else 1.0)
        yield f"{to}.{own_name}_bias", f"{theirs}.{name}.bias", "bias_" + own_name, 1.0


def turned(x, how, heads):
    """Returns a tensor of theirs, (out, in) where it is a matrix, as one of ours."""
    if how == "as is":
        return x
    if how == "transposed":
        return x.T
    if how == "table":
        return x[:, :, None]
    if how == "heads_query":
        return x.T.reshape(x.shape[1], heads, 1, -1)
    if how in ("heads_key", "heads_value"):
        return x.T.reshape(x.shape[1], heads, -1)
    if how == "out_out":
        return x.T.reshape(heads, 1, -1, x.shape[0])
    if how == "bias_query":
        return x.reshape(heads, 1, -1)
    if how in ("bias_key", "bias_value"):
        return x.reshape(heads, -1)
    assert how == "bias_out", how
    return x


def t5():
    config = T5Config(vocab_size=11, d_model=6, d_kv=2, d_ff=7, num_layers=2, num_decoder_layers=3, num_heads=3,
                      relative_attention_num_buckets=6, relative_attention_max_distance=5, dropout_rate=0.0,
                      feed_forward_proj="relu", layer_norm_epsilon=1e-6, tie_word_embeddings=True)
    rows = [("target.weight", "shared.weight", "as is", 1.0)]
    for side, layers in (("encoder", 2), ("decoder", 3)):
        rows.append((f"{side}.relative.table", f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", "table", 1.0))
        rows.append((f"{side}.norm.scale", f"{side}.final_layer_norm.weight", "as is", 6 ** -0.5 if side == "decoder" else 1.0))
        for layer in range(layers):
            to, theirs = f"{side}.blocks.{layer}", f"{side}.block.{layer}.layer"
            parts = [("attention", "SelfAttention")] + ([("source_attention", "EncDecAttention")] if side == "decoder" else [])
            for number, (part, name) in enumerate(parts):
                rows += attention_rows(f"{to}.{part}", f"{theirs}.{number}.{name}", 3, "qkvo", math.sqrt(2))
                norm = "source_norm" if part == "source_attention" else "attention_norm"
                rows.append((f"{to}.{norm}.scale", f"{theirs}.{number}.layer_norm.weight", "as is", 1.0))
            last = f"{theirs}.{len(parts)}"
            rows.append((f"{to}.feed_forward.in.weight", f"{last}.DenseReluDense.wi.weight", "transposed", 1.0))
            rows.append((f"{to}.feed_forward.out.weight", f"{last}.DenseReluDense.wo.weight", "transposed", 1.0))
            rows.append((f"{to}.feed_forward_norm.scale", f"{last}.layer_norm.weight", "as is", 1.0))
    return T5ForConditionalGeneration(config), rows


def bart():
    config = BartConfig(vocab_size=11, d_model=6, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3,
                        decoder_attention_heads=3, encoder_ffn_dim=7, decoder_ffn_dim=7, max_position_embeddings=8,
                        activation_function="gelu", scale_embedding=True, dropout=0.0, pad_token_id=1, eos_token_id=2,
                        bos_token_id=0, decoder_start_token_id=2, forced_eos_token_id=None)
    rows = [("target.weight", "model.shared.weight", "as is", 1.0)]

    def norm(to, theirs):
        return [(f"{to}.{a}", f"{theirs}.{b}", "as is", 1.0) for a, b in (("scale", "weight"), ("bias", "bias"))]

    for side in ("encoder", "decoder"):
        model = f"model.{side}"
        rows.append((f"{side}.positions.weight", f"{model}.embed_positions.weight", "as is", 1.0))
        rows += norm(f"{side}.input_norm", f"{model}.layernorm_embedding")
        for layer in range(2):
            to, theirs = f"{side}.blocks.{layer}", f"{model}.layers.{layer}"
            names = ("q_proj", "k_proj", "v_proj", "out_proj")
            rows += attention_rows(f"{to}.attention", f"{theirs}.self_attn", 3, names)
            rows += norm(f"{to}.attention_norm", f"{theirs}.self_attn_layer_norm")
            if side == "decoder":
                rows += attention_rows(f"{to}.source_attention", f"{theirs}.encoder_attn", 3, names)
                rows += norm(f"{to}.source_norm", f"{theirs}.encoder_attn_layer_norm")
            for a, b in (("in", "fc1"), ("out", "fc2")):
                rows.append((f"{to}.feed_forward.{a}.weight", f"{theirs}.{b}.weight", "transposed", 1.0))
                rows.append((f"{to}.feed_forward.{a}.bias", f"{theirs}.{b}.bias", "as is", 1.0))
            rows += norm(f"{to}.feed_forward_norm", f"{theirs}.final_layer_norm")
    return BartForConditionalGeneration(config), rows


def written(name, made):
    model, rows = made
    model = with_drawn_parameters(model, len(name))
    n = model.config.vocab_size
    texts, places, words = len(SOURCE), max(SOURCE), max(TARGET)
    source = (torch.arange(texts * places) * 5 % (n - 2) + 2).reshape(texts, places)
    target = (torch.arange(texts * words) * 7 % (n - 2) + 2).reshape(texts, words)
    following = (torch.arange(texts * words) * 3 % n).reshape(texts, words)
    source_valid = torch.arange(places) < torch.tensor(SOURCE)[:, None]
    target_valid = torch.arange(words) < torch.tensor(TARGET)[:, None]
    source[~source_valid] = model.config.pad_token_id
    target[~target_valid] = model.config.pad_token_id
    out = model(input_ids=source, attention_mask=source_valid.long(), decoder_input_ids=target,
                decoder_attention_mask=target_valid.long(), use_cache=False)
    losses = torch.nn.functional.cross_entropy(out.logits.flatten(0, 1), following.flatten(), reduction="none",
                                               label_smoothing=SMOOTHING).reshape(texts, words)
    loss = losses[target_valid].mean()
    loss.backward()
    theirs = dict(model.named_parameters())
    tensors = {}
    used = set()
    heads = 3
    for to, key, how, factor in rows:
        if key not in theirs:
            assert how.startswith("bias_"), key  # T5's products have none
            continue
        used.add(key)
        tensors[to] = own(turned(theirs[key], how, heads) * factor)
        tensors["gradient." + to] = own(turned(theirs[key].grad, how, heads) / factor)
    assert used == theirs.keys(), theirs.keys() ^ used
    more = {"source": source.int(), "target": target.int(), "next": following.int(), "source_valid": source_valid,
            "target_valid": target_valid, "loss": loss, "states": out.encoder_last_hidden_state * source_valid[..., None],
            "scores": out.logits * target_valid[..., None]}
    tensors |= {"expected." + key: own(x) for key, x in more.items()}
    if name == "t5":
        tensors |= {key: own(x) for key, x in BUCKETS.items()}
    write(__file__, name, tensors)


written("t5", t5())
written("bart", bart())
