# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what small encoders of Hugging Face and their gradients are, in double: tests/nn/encoder_of_hugging_face/*.safetensors,
which tests/nn/encoder.loopback.cpp reads.

    python3 tests/nn/encoder_of_hugging_face/generate.py        # needs torch and transformers; written by 2.15 and 5.24

A file has an encoder's parameters by the names that examples/protein_encoder/names.py gives them; gradient.…, the gradients of the
loss by them; and ids, valid, targets, the states of all layers, the probabilities and the loss: the mean over valid places of the
cross-entropy of the masked scores. States at places that are not valid are zeros here. esm_masked is esm with its token dropout:
some of its tokens are masked, and the loss is that of these places, as Hugging Face has it.
"""
import os
import sys

import torch
from transformers import BertConfig, BertForMaskedLM, EsmConfig, EsmForMaskedLM

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from hugging_face import own, with_drawn_parameters, write  # noqa: E402  (first: it finds names)
import names  # noqa: E402

LENGTHS = [5, 2, 4]


def bert():
    config = BertConfig(vocab_size=11, hidden_size=6, num_hidden_layers=2, num_attention_heads=3, intermediate_size=7,
                        max_position_embeddings=6, type_vocab_size=2, layer_norm_eps=1e-12, hidden_act="gelu")
    return BertForMaskedLM(config), names.BERT, {"token_type_ids": torch.tensor([[0, 0, 1, 1, 1], [0, 1, 0, 0, 0], [1, 0, 0, 1, 0]])}


def esm(token_dropout):
    config = EsmConfig(vocab_size=9, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=7,
                       position_embedding_type="rotary", layer_norm_eps=1e-5, emb_layer_norm_before=False, token_dropout=token_dropout,
                       pad_token_id=1, mask_token_id=8)
    return EsmForMaskedLM(config), names.ESM, {}


def written(name, made):
    model, rows, inputs = made
    model = with_drawn_parameters(model, len(name))
    n = model.config.vocab_size
    ids = (torch.arange(15) * 5 % (n - 2) + 2).reshape(3, 5)
    valid = torch.arange(5) < torch.tensor(LENGTHS)[:, None]
    ids[~valid] = model.config.pad_token_id
    targets = (torch.arange(15) * 5 % n).reshape(3, 5)
    counts = valid
    if getattr(model.config, "token_dropout", False):
        counts = (torch.arange(15) % 3 == 1).reshape(3, 5) & valid  # two, none and two
        ids[counts] = model.config.mask_token_id
    out = model(input_ids=ids, attention_mask=valid.long(), output_hidden_states=True, labels=targets.masked_fill(~counts, -100), **inputs)
    loss = out.loss
    loss.backward()
    heads = model.config.num_attention_heads
    table = next(key for key in model.state_dict() if key.endswith("word_embeddings.weight"))
    parameters = dict(model.named_parameters())
    tensors = names.renamed(rows, {key: own(x) for key, x in model.state_dict().items()}, heads)
    # What has no gradient is not used, such as the contact head.
    gradients = names.renamed(rows, {key: own(x.grad) for key, x in parameters.items() if x.grad is not None}, heads)
    assert table in parameters and gradients.keys() == tensors.keys(), gradients.keys() ^ tensors.keys()
    tensors |= {"gradient." + key: x for key, x in gradients.items()}
    states = torch.stack(out.hidden_states) * valid[..., None]
    probabilities = out.logits.softmax(-1) * valid[..., None]
    more = {"ids": ids.int(), "valid": valid, "counts": counts, "targets": targets.int(), "loss": loss, "probabilities": probabilities}
    more |= {f"states.{layer}": x for layer, x in enumerate(states)}
    if "token_type_ids" in inputs:
        more["kinds"] = inputs["token_type_ids"].int()
    tensors |= {"expected." + key: own(x) for key, x in more.items()}
    write(__file__, name, tensors)


written("bert", bert())
written("esm", esm(False))
written("esm_masked", esm(True))
