# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what small encoders of Hugging Face and their gradients are, in double: tests/nn/encoder_of_hugging_face/*.safetensors,
which tests/nn/encoder.loopback.cpp reads.

    python3 tests/nn/encoder_of_hugging_face/generate.py        # needs torch and transformers; written by 2.15 and 5.24

A file has an encoder's parameters by the names that examples/protein_encoder/names.py gives them; gradient.…, the gradients of the
loss by them; and ids, valid, targets, the states of all layers, the probabilities and the loss: the mean over valid places of the
cross-entropy of the masked scores. States at places that are not valid are zeros here.
"""
import os
import sys

import torch
from transformers import BertConfig, BertForMaskedLM, EsmConfig, EsmForMaskedLM

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "examples", folder) for folder in ("protein_encoder", "support")]
import names  # noqa: E402
import torch_file  # noqa: E402

torch.set_num_threads(1)  # so that another run writes the same bits
# Hugging Face turns queries and keys in float, whatever a model's type is; here in double.
torch.float = torch.float64
torch.Tensor.float = torch.Tensor.double

KINDS = {torch.float64: "F64", torch.int32: "I32", torch.bool: "BOOL"}
LENGTHS = [5, 2, 4]


def own(x):
    """Returns a torch tensor as the converter's."""
    x = x.detach().contiguous()
    return torch_file.Tensor(KINDS[x.dtype], x.numpy().tobytes(), 0, x.shape, torch_file.strides_of(x.shape))


def bert():
    config = BertConfig(vocab_size=11, hidden_size=6, num_hidden_layers=2, num_attention_heads=3, intermediate_size=7,
                        max_position_embeddings=6, type_vocab_size=2, layer_norm_eps=1e-12, hidden_act="gelu")
    return BertForMaskedLM(config), names.BERT, {"token_type_ids": torch.tensor([[0, 0, 1, 1, 1], [0, 1, 0, 0, 0], [1, 0, 0, 1, 0]])}


def esm():
    config = EsmConfig(vocab_size=9, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=7,
                       position_embedding_type="rotary", layer_norm_eps=1e-5, emb_layer_norm_before=False, token_dropout=False,
                       pad_token_id=1, mask_token_id=8)
    return EsmForMaskedLM(config), names.ESM, {}


def written(name, made):
    model, rows, inputs = made
    model = model.to(torch.float64).eval()
    torch.manual_seed(len(name))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, dtype=torch.float64) + (parameter.mean() > 0.5))
    n = model.config.vocab_size
    ids = (torch.arange(15) * 5 % (n - 2) + 2).reshape(3, 5)
    valid = torch.arange(5) < torch.tensor(LENGTHS)[:, None]
    ids[~valid] = model.config.pad_token_id
    targets = (torch.arange(15) * 5 % n).reshape(3, 5)
    out = model(input_ids=ids, attention_mask=valid.long(), output_hidden_states=True, **inputs)
    losses = torch.nn.functional.cross_entropy(out.logits.flatten(0, 1), targets.flatten(), reduction="none").reshape(3, 5)
    loss = losses[valid].mean()
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
    more = {"ids": ids.int(), "valid": valid, "targets": targets.int(), "loss": loss, "probabilities": probabilities}
    more |= {f"states.{layer}": x for layer, x in enumerate(states)}
    if "token_type_ids" in inputs:
        more["kinds"] = inputs["token_type_ids"].int()
    tensors |= {"expected." + key: own(x) for key, x in more.items()}
    torch_file.write_safetensors(os.path.join(HERE, name + ".safetensors"), tensors, {"written_by": "generate.py"})


written("bert", bert())
written("esm", esm())
