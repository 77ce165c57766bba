# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gets the weights of anarcii's models, and converts them to the .safetensors file that number_antibodies reads.

    python3 examples/number_antibodies/fetch.py accuracy weights       # writes weights/anarcii_accuracy.safetensors, prints its path

The weights come in a wheel, by `python3 -m pip download` from the package index that pip is set up with. Its version and the
SHA-256 of its bytes are pinned here. A file that is there already is not made anew. Without a network, put the wheel into the
folder by hand. Python's standard library is all that is needed.
"""
import argparse
import os
import sys
import zipfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")]
import names  # noqa: E402
import torch_file  # noqa: E402
from download import Refused, Wheel, downloaded, say  # noqa: E402

VERSION = "1"  # of what is written: another one makes files anew
WHEEL = Wheel("anarcii", "2.0.8", "6ac81caef04a9cad1af1ea320b35bdced620fe2bfdd0b8b17b98131495b584ca", 17560083, "BSD-3-Clause")
HEADS = 4
# Two layers a side, or one.
MODELS = {"accuracy": "anarcii/models/antibody/antibody_4_2_128_512.pt", "speed": "anarcii/models/antibody/antibody_4_1_128_512.pt"}


def facts_of(tensors):
    """Returns what a program needs to know beside the tensors, as texts."""
    source, embed = tensors["source.weight"].shape
    layers = {side: sum(name.startswith(f"{side}.blocks.") and name.endswith(".attention.query") for name in tensors)
              for side in ("encoder", "decoder")}
    facts = {"from": WHEEL.file, "licence": WHEEL.licence, "version": VERSION, "source": source, "target": tensors["target.weight"].shape[0],
             "places": tensors["encoder.positions.weight"].shape[0], "embed": embed, "heads": HEADS,
             "hidden": tensors["encoder.blocks.0.feed_forward.in.weight"].shape[1], "encoder_layers": layers["encoder"],
             "decoder_layers": layers["decoder"]}
    return {key: str(value) for key, value in facts.items()}


def is_current(path):
    try:
        return torch_file.facts_of_safetensors(path).get("version") == VERSION
    except (OSError, torch_file.FileFault):
        return False


def fetched(name, folder):
    """Returns the path of the model's .safetensors in the folder, made if it is not there."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"anarcii_{name}.safetensors")
    if is_current(path):
        return path
    wheel = downloaded(WHEEL, folder)
    say(f"{name}: converting")
    try:
        tensors = names.renamed(torch_file.load(zipfile.ZipFile(wheel).read(MODELS[name])), HEADS)
    except torch_file.FileFault as fault:
        raise Refused(f"{wheel}/{MODELS[name]} is not read: {fault}") from fault
    torch_file.write_safetensors(path, tensors, facts_of(tensors))
    return path


def main():
    parser = argparse.ArgumentParser(description="Gets a model's weights as a .safetensors file, and prints its path.")
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("folder", help="where the wheel and the file are kept")
    given = parser.parse_args()
    try:
        print(fetched(given.model, given.folder))
    except (Refused, OSError) as fault:
        sys.exit(f"fetch.py: {fault}")


if __name__ == "__main__":
    main()
