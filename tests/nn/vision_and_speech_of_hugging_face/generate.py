# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what small Vision Transformers and Conformer blocks of Hugging Face and their gradients are, in double:
tests/nn/vision_and_speech_of_hugging_face/*.safetensors, which tests/nn/vision_and_speech.loopback.cpp reads.

    python3 tests/nn/vision_and_speech_of_hugging_face/generate.py        # needs torch and transformers; written by 2.15 and 5.24

A file has a model's parameters by the names of our fields; gradient.…, the gradients of the loss by them and by the input; and the
input and what comes of it. vit: ViTForImageClassification, whose position of the class token is added to that token; mean: the same
modules without a class token, whose mean over patches is scored. conformer: Wav2Vec2ConformerEncoderLayer while it trains;
evaluated: SeamlessM4TConformerEncoderLayer by given statistics, with places that are not valid; ragged: the same while it trains,
whose batch norm sees the valid places alone.
"""
import os
import sys

import torch
from transformers import SeamlessM4TConfig, ViTConfig, ViTForImageClassification, Wav2Vec2ConformerConfig
from transformers.models.seamless_m4t.modeling_seamless_m4t import SeamlessM4TConformerEncoderLayer
from transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer import Wav2Vec2ConformerEncoderLayer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from hugging_face import own, with_drawn_parameters, write  # noqa: E402


def linear(to, theirs):
    return [(to + ".weight", theirs + ".weight", lambda x, h: x.T), (to + ".bias", theirs + ".bias", lambda x, h: x)]


def norm(to, theirs):
    return [(to + ".scale", theirs + ".weight", lambda x, h: x), (to + ".bias", theirs + ".bias", lambda x, h: x)]


def attention(to, query, key, value, out):
    rows = [(to + "query", query + ".weight", lambda x, h: x.T.reshape(x.shape[1], h, 1, -1)),
            (to + "query_bias", query + ".bias", lambda x, h: x.reshape(h, 1, -1)),
            (to + "out", out + ".weight", lambda x, h: x.T.reshape(h, 1, -1, x.shape[0])), (to + "out_bias", out + ".bias", lambda x, h: x)]
    for name, theirs in (("key", key), ("value", value)):
        rows += [(to + name, theirs + ".weight", lambda x, h: x.T.reshape(x.shape[1], h, -1)),
                 (to + name + "_bias", theirs + ".bias", lambda x, h: x.reshape(h, -1))]
    return rows


def vision_rows(layers):
    rows = [("patches", "vit.embeddings.patch_embeddings.projection.weight", lambda x, h: x.permute(2, 3, 1, 0)),
            ("patches_bias", "vit.embeddings.patch_embeddings.projection.bias", lambda x, h: x)]
    for n in range(layers):
        there, here = f"vit.layers.{n}.", f"blocks.{n}."
        rows += attention(here + "attention.", *(there + f"attention.{p}_proj" for p in "qkvo"))
        rows += norm(here + "attention_norm", there + "layernorm_before") + norm(here + "feed_forward_norm", there + "layernorm_after")
        rows += linear(here + "feed_forward.in", there + "mlp.fc1") + linear(here + "feed_forward.out", there + "mlp.fc2")
    return rows + norm("norm", "vit.layernorm") + linear("head", "classifier")


SPEECH = (norm("first_norm", "ffn1_layer_norm") + linear("first.in", "ffn1.intermediate_dense") + linear("first.out", "ffn1.output_dense") +
          norm("attention_norm", "self_attn_layer_norm") + attention("attention.", *(f"self_attn.linear_{p}" for p in ("q", "k", "v", "out"))) +
          norm("convolution.norm", "conv_module.layer_norm") + norm("convolution.batch_norm", "conv_module.batch_norm") +
          [("convolution.in.weight", "conv_module.pointwise_conv1.weight", lambda x, h: x[:len(x) // 2, :, 0].T),
           ("convolution.gate.weight", "conv_module.pointwise_conv1.weight", lambda x, h: x[len(x) // 2:, :, 0].T),
           ("convolution.kernel", "conv_module.depthwise_conv.weight", lambda x, h: x.permute(2, 1, 0)),
           ("convolution.out.weight", "conv_module.pointwise_conv2.weight", lambda x, h: x[:, :, 0].T)] +
          norm("second_norm", "ffn2_layer_norm") + linear("second.in", "ffn2.intermediate_dense") +
          linear("second.out", "ffn2.output_dense") + norm("norm", "final_layer_norm"))


def named(rows, tensors, heads):
    missing = tensors.keys() - {theirs for _, theirs, _ in rows}
    return {here: way(tensors[theirs], heads) for here, theirs, way in rows}, missing


def tensors_of(rows, model, heads, more):
    """Returns the model's parameters and gradients by our names; more(tensors) has those that no row names."""
    made = {}
    for prefix, of in (("", lambda p: p.detach()), ("gradient.", lambda p: p.grad)):
        theirs = {name: of(p) for name, p in model.named_parameters() if p.grad is not None}
        ours, missing = named(rows, theirs, heads)
        added, used = more(theirs, prefix)
        assert missing == used, missing ^ used
        made |= {prefix + name: x for name, x in (ours | added).items()}
    return made


def vision(name, class_token):
    config = ViTConfig(hidden_size=6, num_hidden_layers=2, num_attention_heads=3, intermediate_size=7, image_size=(9, 8), patch_size=(3, 2),
                       num_channels=2, num_labels=5, layer_norm_eps=1e-6, hidden_act="gelu")
    model = with_drawn_parameters(ViTForImageClassification(config), len(name))
    images = torch.randn(3, 2, 9, 8, dtype=torch.float64).requires_grad_()
    parts = model.vit.embeddings
    if class_token:
        out = model(images, output_hidden_states=True)
        states, scores = list(out.hidden_states), out.logits
        assert torch.equal(scores, model.classifier(model.vit(images).last_hidden_state[:, 0]))
    else:
        states = [parts.patch_embeddings(images) + parts.position_embeddings[:, 1:]]
        for layer in model.vit.layers:
            states.append(layer(states[-1]))
    # Their list ends with the states before the last norm or after it, by version.
    last = model.vit.layernorm(states[-1]) if not class_token else model.vit(images).last_hidden_state
    states = states[:-1] + [last]
    if not class_token:
        scores = model.classifier(last.mean(1))
    loss = (scores * torch.linspace(-1, 2, scores.numel(), dtype=torch.float64).reshape(scores.shape)).sum()
    loss.backward()

    def more(theirs, prefix):
        places = theirs["vit.embeddings.position_embeddings"][0]
        added = {"positions": places[1:].reshape(3, 4, 6)}
        used = {"vit.embeddings.position_embeddings"}
        if class_token:
            token = theirs["vit.embeddings.cls_token"][0, 0]
            used.add("vit.embeddings.cls_token")
            assert not prefix or torch.allclose(token, places[0])  # a sum's two parts have one gradient
            added["class_token"] = token if prefix else token + places[0]
        return added, used

    tensors = tensors_of(vision_rows(2), model, 3, more)
    tensors |= {"images": images.permute(0, 2, 3, 1), "gradient.images": images.grad.permute(0, 2, 3, 1), "expected.scores": scores}
    tensors |= {f"expected.states.{n}": x for n, x in enumerate(states)}
    write(__file__, name, {key: own(x) for key, x in tensors.items()})


class OfValid(torch.nn.Module):
    """A batch norm of (batch, channels, places) that sees the valid places alone."""

    def __init__(self, norm, valid):
        super().__init__()
        self.norm, self.valid = norm, valid
        self.weight, self.bias = norm.weight, norm.bias

    def forward(self, x):
        x = x.transpose(1, 2)
        return torch.zeros_like(x).masked_scatter(self.valid[..., None], self.norm(x[self.valid])).transpose(1, 2)


def speech(name, layer, lengths, training):
    layer = with_drawn_parameters(layer, len(name))
    x = torch.randn(3, 7, 6, dtype=torch.float64)
    valid = torch.arange(7) < torch.tensor(lengths)[:, None]
    x = (x * valid[..., None]).requires_grad_()
    batch_norm = layer.conv_module.batch_norm
    batch_norm.running_mean.copy_(torch.randn(6)), batch_norm.running_var.copy_(torch.rand(6) + 0.5)
    given = {"statistics.mean": batch_norm.running_mean.clone(), "statistics.variance": batch_norm.running_var.clone()}
    if training:
        batch_norm.train()
        batch_norm.momentum = 1.0  # the running statistics are the batch's
    masks = {}
    if not valid.all():
        scores = torch.zeros(3, 1, 1, 7, dtype=torch.float64).masked_fill(~valid[:, None, None], -torch.inf)
        masks = {"attention_mask": scores, "conv_attention_mask": valid}
        if training:
            layer.conv_module.batch_norm = OfValid(batch_norm, valid)
    y = layer(x, **masks)
    y = (y[0] if isinstance(y, tuple) else y) * valid[..., None]
    (y * torch.linspace(-1, 2, y.numel(), dtype=torch.float64).reshape(y.shape)).sum().backward()
    layer.conv_module.batch_norm = batch_norm
    tensors = tensors_of(SPEECH, layer, 3, lambda theirs, prefix: ({}, set()))
    tensors |= {"input.x": x, "input.valid": valid, "expected.y": y, "gradient.x": x.grad}
    if training:
        n = int(valid.sum())  # PyTorch keeps the variance times n / (n - 1)
        given = {"statistics.mean": batch_norm.running_mean, "statistics.variance": batch_norm.running_var * (n - 1) / n}
    write(__file__, name, {key: own(x) for key, x in (tensors | given).items()})


def wav2vec():
    return Wav2Vec2ConformerEncoderLayer(Wav2Vec2ConformerConfig(
        hidden_size=6, num_attention_heads=3, intermediate_size=8, conv_depthwise_kernel_size=5, hidden_act="silu",
        position_embeddings_type=None, attention_dropout=0.0, conformer_conv_dropout=0.0, attn_implementation="eager"))


def seamless():
    return SeamlessM4TConformerEncoderLayer(SeamlessM4TConfig(
        hidden_size=6, speech_encoder_attention_heads=3, speech_encoder_intermediate_size=8, conv_depthwise_kernel_size=5,
        speech_encoder_hidden_act="silu", position_embeddings_type="none", speech_encoder_dropout=0.0, attn_implementation="eager"))


vision("vit", True)
vision("mean", False)
speech("conformer", wav2vec(), [7, 7, 7], True)
speech("evaluated", seamless(), [7, 2, 5], False)
speech("ragged", seamless(), [7, 2, 5], True)
