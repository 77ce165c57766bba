# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs Hugging Face's implementation of a fetched encoder in float64, on the same wheel and by PyTorch's own reader.

    python3 tests/nn/encoder_of_hugging_face/oracle.py antiberty weights sequences.txt out     # needs numpy, torch, transformers

The sequences are one a line, and '_' is a letter to be found. Written to the folder out: states.npy, (layers + 1, sequences, places,
width), zero where a sequence has ended; found.npy, the words' probabilities at each '_', (places, words); ids.npy, (sequences, places).
"""
import argparse
import io
import os
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples", "protein_encoder"))
import fetch  # noqa: E402
from download import downloaded  # noqa: E402


def missing():
    """Returns what there is to install, or nothing."""
    lacking = []
    for package in ("numpy", "torch", "transformers"):
        try:
            __import__(package)
        except ImportError:
            lacking.append(package)
    return lacking


def bert(tree):
    """Returns Hugging Face's model with the weights of a BERT; heads that it has not are left out."""
    from transformers import BertConfig, BertForMaskedLM
    table = tree["bert.embeddings.word_embeddings.weight"]
    layers = 1 + max(int(key.split(".")[3]) for key in tree if key.startswith("bert.encoder.layer."))
    model = BertForMaskedLM(BertConfig(
        vocab_size=table.shape[0], hidden_size=table.shape[1], num_hidden_layers=layers, num_attention_heads=8,
        intermediate_size=tree["bert.encoder.layer.0.intermediate.dense.weight"].shape[0],
        max_position_embeddings=tree["bert.embeddings.position_embeddings.weight"].shape[0], layer_norm_eps=1e-12, pad_token_id=0))
    lacking, further = model.load_state_dict(tree, strict=False)
    assert not [key for key in lacking if "position_ids" not in key], lacking
    assert all(key.startswith(("bert.pooler.", "cls.species.", "cls.chain.", "cls.graft.", "bert.embeddings.position_ids"))
               for key in further), further
    return model


def roberta(tree):
    """Returns Hugging Face's model with the weights of fairseq's RoBERTa."""
    import torch
    from transformers import RobertaConfig, RobertaForMaskedLM
    tree = {key.removeprefix("decoder.").replace("sentence_encoder.", ""): x for key, x in tree["model"].items()}
    layers = 1 + max(int(key.split(".")[1]) for key in tree if key.startswith("layers."))
    words, width = tree["embed_tokens.weight"].shape
    model = RobertaForMaskedLM(RobertaConfig(
        vocab_size=words, hidden_size=width, num_hidden_layers=layers, num_attention_heads=8, type_vocab_size=1, pad_token_id=1,
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
    """Returns the model in evaluation mode, and its settings of fetch.py."""
    import torch
    made = fetch.MODELS[name]
    data = zipfile.ZipFile(downloaded(made.wheel, folder)).read(made.way[0])
    torch.serialization.add_safe_globals([argparse.Namespace])
    tree = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    return (bert if name == "antiberty" else roberta)(tree).eval(), made.facts


def ids_of(facts, sequences):
    """Returns ids and whether they are of a sequence, both (sequences, places)."""
    import torch
    words = facts["words"].split()
    mask, unknown = words.index(facts["mask"]), words.index(facts["unknown"])
    number = {word: i for i, word in enumerate(words) if len(word) == 1} | {"_": mask}
    rows = [[words.index(facts["begin"]), *(number.get(c, unknown) for c in text), words.index(facts["end"])] for text in sequences]
    ids = torch.full((len(rows), max(map(len, rows))), words.index(facts["padding"]))
    for row, own in zip(ids, rows):
        row[:len(own)] = torch.tensor(own)
    return ids, ids != words.index(facts["padding"])


def answers(name, folder, sequences):
    """Returns states, probabilities at masked places, and ids, as NumPy arrays."""
    import torch
    model, facts = model_of(name, folder)
    ids, valid = ids_of(facts, sequences)
    with torch.no_grad():
        out = model.double()(input_ids=ids, attention_mask=valid.long(), output_hidden_states=True)
    states = torch.stack(out.hidden_states) * valid[..., None]
    found = out.logits.softmax(-1)[ids == facts["words"].split().index(facts["mask"])]
    return states.numpy(), found.numpy(), ids.numpy()


def main():
    parser = argparse.ArgumentParser(description="Writes Hugging Face's states and probabilities, in float64.")
    parser.add_argument("model", choices=("antiberty", "sapiens_vh", "sapiens_vl"))
    parser.add_argument("folder", help="where fetch.py keeps wheels")
    parser.add_argument("sequences", help="a file, one sequence a line")
    parser.add_argument("out", help="a folder")
    given = parser.parse_args()
    if lacking := missing():
        sys.exit(f"oracle.py: {', '.join(lacking)}: not here; python3 -m pip install {' '.join(lacking)}")
    import numpy
    with open(given.sequences) as file:
        made = answers(given.model, given.folder, [line.strip() for line in file if line.strip()])
    os.makedirs(given.out, exist_ok=True)
    for name, values in zip(("states", "found", "ids"), made):
        numpy.save(os.path.join(given.out, name + ".npy"), values)


if __name__ == "__main__":
    main()
