# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads tensors from files that PyTorch or safetensors wrote, and writes .safetensors, with the standard library alone.

    tensors = load(open("pytorch_model.bin", "rb").read())          # a tree of dicts and lists; its tensors are `Tensor`s
    query = tensors["query.weight"].permute(1, 0).reshape(512, 8, 64)
    write_safetensors("model.safetensors", {"query": query}, {"model": "mine"})

A file of PyTorch is a pickle, and a pickle may name any function to be called. `load` knows the few names that tensors take;
a file with any other is refused before anything of it runs.
"""
import collections
import io
import json
import math
import os
import pickle
import struct
import zipfile

# Type of a storage in PyTorch: the format's name of its elements, and their bytes.
STORAGES = {"FloatStorage": ("F32", 4), "DoubleStorage": ("F64", 8), "HalfStorage": ("F16", 2), "BFloat16Storage": ("BF16", 2),
            "LongStorage": ("I64", 8), "IntStorage": ("I32", 4), "ShortStorage": ("I16", 2), "CharStorage": ("I8", 1),
            "ByteStorage": ("U8", 1), "BoolStorage": ("BOOL", 1)}
BYTES = dict(STORAGES.values())
VIEWS = {1: "B", 2: "H", 4: "I", 8: "Q"}  # elements are moved and never computed with
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C  # the first number of a file that is no zip


class FileFault(Exception):
    """What is wrong with a file, as a sentence."""


def strides_of(shape):
    strides, step = [], 1
    for n in reversed(shape):
        strides.insert(0, step)
        step *= n
    return tuple(strides)


class Tensor:
    """Elements of a storage at offset + sum of index times stride."""

    def __init__(self, kind, storage, offset, shape, strides):
        self.kind, self.storage, self.offset = kind, storage, offset
        self.shape, self.strides = tuple(shape), tuple(strides)
        last = offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides))
        if min((offset, *self.shape, *self.strides)) < 0 or (self.size and (last + 1) * BYTES[kind] > len(storage)):
            raise FileFault(f"a tensor {list(self.shape)} ends at element {last}, and its storage has "
                            f"{len(storage) // BYTES[kind]}")

    @property
    def size(self):
        return math.prod(self.shape)

    def permute(self, *order):
        return Tensor(self.kind, self.storage, self.offset, [self.shape[d] for d in order], [self.strides[d] for d in order])

    def reshape(self, *shape):
        if math.prod(shape) != self.size:
            raise FileFault(f"a tensor {list(self.shape)} has {self.size} elements and is read as {list(shape)}")
        return Tensor(self.kind, self.bytes(), 0, shape, strides_of(shape))

    def bytes(self):
        """Returns the elements in row-major order."""
        size = BYTES[self.kind]
        if self.strides == strides_of(self.shape):
            return bytes(self.storage[self.offset * size:(self.offset + self.size) * size])
        if not self.size:
            return b""
        view = memoryview(self.storage).cast("B").cast(VIEWS[size])
        parts = []

        def rows(dimension, begin):
            if dimension == len(self.shape) - 1:
                n, step = self.shape[-1], self.strides[-1]
                parts.append(view[begin:begin + (n - 1) * step + 1:step].tobytes() if step else view[begin:begin + 1].tobytes() * n)
                return
            for i in range(self.shape[dimension]):
                rows(dimension + 1, begin + i * self.strides[dimension])

        rows(0, self.offset)
        return b"".join(parts)


class Dict(dict):
    """Stands for an OrderedDict, whose members beside its items are left out."""

    def __setstate__(self, state):
        pass


class Settings(dict):
    """Stands for a namespace: its members are the items."""

    def __setstate__(self, state):
        self.update(state)


class Storage:
    """A storage whose bytes are known later where they follow the pickle."""

    def __init__(self, kind, count):
        self.kind, self.count, self.bytes = kind, count, None


class Unfinished:
    """A tensor whose storage is not yet read."""

    def __init__(self, storage, offset, shape, strides, *_):
        self.storage, self.offset, self.shape, self.strides = storage, offset, shape, strides

    def finished(self):
        s = self.storage
        return Tensor(s.kind, s.bytes, self.offset, self.shape, self.strides)


NAMES = {("collections", "OrderedDict"): Dict, ("argparse", "Namespace"): Settings,
         ("torch._utils", "_rebuild_tensor_v2"): Unfinished, ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
         **{("torch", name): name for name in STORAGES}}


class TensorsAlone(pickle.Unpickler):
    """Loads pickles that hold numbers, texts, lists, dicts and tensors."""

    def __init__(self, file):
        super().__init__(file)
        self.storages = collections.OrderedDict()

    def find_class(self, module, name):
        if (module, name) not in NAMES:
            raise FileFault(f"its pickle names {module}.{name}, and only tensors, dicts and settings are read; nothing of it was run")
        return NAMES[module, name]

    def persistent_load(self, said):
        if not isinstance(said, tuple) or len(said) < 5 or said[0] != "storage" or said[1] not in STORAGES:
            raise FileFault(f"its pickle names the storage {said!r}, which is of no known kind")
        if len(said) > 5 and said[5] is not None:
            raise FileFault("a storage is a view of another one; save the file again with PyTorch 1.6 or later")
        return self.storages.setdefault(str(said[2]), Storage(STORAGES[said[1]][0], int(said[4])))


def finish(tree):
    """Returns a tree of plain dicts, lists and Tensors."""
    if isinstance(tree, Unfinished):
        return tree.finished()
    if isinstance(tree, dict):
        return {key: finish(value) for key, value in tree.items()}
    return [finish(value) for value in tree] if isinstance(tree, (list, tuple)) else tree


def load_zip(data):
    archive = zipfile.ZipFile(io.BytesIO(data))
    pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise FileFault(f"it is a zip with {len(pickles)} files data.pkl, and PyTorch writes one")
    folder = pickles[0][:-len("data.pkl")]
    if folder + "byteorder" in archive.namelist() and archive.read(folder + "byteorder") != b"little":
        raise FileFault("its elements are big endian; save it again on another machine")
    unpickler = TensorsAlone(io.BytesIO(archive.read(pickles[0])))
    tree = unpickler.load()
    for key, storage in unpickler.storages.items():
        try:
            storage.bytes = archive.read(f"{folder}data/{key}")
        except KeyError:
            raise FileFault(f"it lacks the storage {folder}data/{key} that its pickle names") from None
    return finish(tree)


def load_legacy(data):
    """Reads what PyTorch wrote before 1.6: five pickles, and then each storage's count and bytes."""
    file = io.BytesIO(data)
    if TensorsAlone(file).load() != LEGACY_MAGIC:
        raise FileFault("it is neither a zip nor begins as PyTorch's older files do")
    version = TensorsAlone(file).load()
    system = TensorsAlone(file).load()
    if version != 1001 or not system.get("little_endian"):
        raise FileFault(f"it has version {version} and {system}, and version 1001, little endian, is read")
    unpickler = TensorsAlone(file)
    tree = unpickler.load()
    for key in TensorsAlone(file).load():
        storage = unpickler.storages[key]
        (count,) = struct.unpack("<q", file.read(8))
        if count != storage.count:
            raise FileFault(f"its storage {key} has {count} elements, and its pickle says {storage.count}")
        storage.bytes = file.read(count * BYTES[storage.kind])
    return finish(tree)


def load(data):
    """Returns the tree of a file of PyTorch, given as bytes. Raises FileFault for anything else."""
    try:
        return load_zip(data) if data[:4] == b"PK\x03\x04" else load_legacy(data)
    except (pickle.UnpicklingError, zipfile.BadZipFile, EOFError, struct.error, AttributeError, IndexError, KeyError, TypeError) as fault:
        raise FileFault(f"it is damaged, or no file of PyTorch: {fault}") from fault


def safetensors_header(file, size):
    """Returns the header of a .safetensors file of `size` bytes."""
    start = file.read(8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
    if length > size - 8:
        raise FileFault("it is no .safetensors file, or is cut off")
    try:
        header = json.loads(file.read(length))
    except ValueError as fault:
        raise FileFault(f"its header is no JSON: {fault}") from fault
    ends = [said["data_offsets"][1] for name, said in header.items() if name != "__metadata__"]
    if max(ends, default=0) > size - 8 - length:
        raise FileFault(f"its tensors end at byte {max(ends)} of its data, and it has {size - 8 - length}")
    return header, 8 + length


def facts_of_safetensors(path):
    """Returns the texts beside a file's tensors."""
    with open(path, "rb") as file:
        return safetensors_header(file, os.path.getsize(path))[0].get("__metadata__", {})


def load_safetensors(data):
    """Returns the tensors of a .safetensors file, given as bytes, by name."""
    header, begin = safetensors_header(io.BytesIO(data), len(data))
    made = {}
    for name, said in header.items():
        if name != "__metadata__":
            first, last = said["data_offsets"]
            made[name] = Tensor(said["dtype"], data[begin + first:begin + last], 0, said["shape"], strides_of(said["shape"]))
    return made


def write_safetensors(path, tensors, facts):
    """Writes tensors by name, and texts beside them. A file is replaced whole, or not at all."""
    header, data, at = {"__metadata__": facts}, [], 0
    for name, tensor in tensors.items():
        data.append(tensor.bytes())
        header[name] = {"dtype": tensor.kind, "shape": list(tensor.shape), "data_offsets": [at, at + len(data[-1])]}
        at += len(data[-1])
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    beside = f"{path}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for part in data:
                file.write(part)
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.remove(beside)
