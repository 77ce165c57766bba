# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gets the weights of anarcii's models, and converts them to the .safetensors file that number_antibodies reads.

    python3 examples/number_antibodies/fetch.py accuracy weights       # writes weights/anarcii_accuracy.safetensors, prints its path

The weights come in a wheel, by `python3 -m pip download` from the package index that pip is set up with. Its version and the
SHA-256 of its bytes are pinned here. A file that is there already is not made anew. Without a network, put the wheel into the
folder by hand. Python's standard library is all that is needed.
"""
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")]
import names  # noqa: E402
import weights  # noqa: E402
from download import Wheel  # noqa: E402

WHEEL = Wheel("anarcii", "2.0.8", "6ac81caef04a9cad1af1ea320b35bdced620fe2bfdd0b8b17b98131495b584ca", 17560083, "BSD-3-Clause")
HEADS = 4


class Model:
    def __init__(self, file):
        self.wheel, self.way = WHEEL, ["anarcii/models/antibody/" + file]

    def converted(self, tree, _):
        """Returns the tensors by their names here, and what a program needs to know beside them."""
        tensors = names.renamed(tree, HEADS)
        source, embed = tensors["source.weight"].shape
        layers = {side: sum(name.startswith(f"{side}.blocks.") and name.endswith(".attention.query") for name in tensors)
                  for side in ("encoder", "decoder")}
        return tensors, {
            "from": self.wheel.file, **weights.facts_of(self.wheel), "source": source, "target": tensors["target.weight"].shape[0],
            "places": tensors["encoder.positions.weight"].shape[0], "embed": embed, "heads": HEADS,
            "hidden": tensors["encoder.blocks.0.feed_forward.in.weight"].shape[1], "encoder_layers": layers["encoder"],
            "decoder_layers": layers["decoder"]}


# Two layers a side, or one.
MODELS = {"accuracy": Model("antibody_4_2_128_512.pt"), "speed": Model("antibody_4_1_128_512.pt")}


def fetched(name, folder, remove_wheel=False):
    """Returns the path of the model's .safetensors in the folder, made if it is not there."""
    return weights.fetched(MODELS[name], os.path.join(folder, f"anarcii_{name}.safetensors"), remove_wheel)


if __name__ == "__main__":
    weights.main(MODELS, fetched)
