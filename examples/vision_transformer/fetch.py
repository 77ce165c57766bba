# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gets real images: Fashion-MNIST, 70,000 photographs of clothes in 10 classes, from a package of Debian.

    python3 examples/vision_transformer/fetch.py images          # 30 MiB; prints the folder

The folder keeps the package, whose version and SHA-256 are pinned here, and gets files that NumPy reads, too:

    learn.images.npy, learn.classes.npy            (60000, 28, 28, 1), uint8; (60000), int32
    held_out.images.npy, held_out.classes.npy      (10000, 28, 28, 1); (10000)

A package that is there already is not downloaded again. Without a network, put it into the folder by hand. Python's standard library
is all that is needed. Source: Xiao, Rasul and Vollgraf, "Fashion-MNIST" (2017).
"""
import argparse
import array
import gzip
import os
import struct
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")]
import debian_archive  # noqa: E402
from download import DebianPackage, Refused, downloaded  # noqa: E402

FASHION = DebianPackage("dataset-fashion-mnist", "0.0~git20200523.55506a9-1",
                        "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0", 30900652, "MIT")
FILES = {"train-images-idx3-ubyte": "learn.images", "train-labels-idx1-ubyte": "learn.classes",
         "t10k-images-idx3-ubyte": "held_out.images", "t10k-labels-idx1-ubyte": "held_out.classes"}


def of_idx(data):
    """Returns the shape and the bytes of an IDX file of bytes. Raises ValueError."""
    zeros, kind, rank = struct.unpack_from(">HBB", data)
    shape = struct.unpack_from(f">{rank}I", data, 4)
    count = 1
    for n in shape:
        count *= n
    body = data[4 + 4 * rank:]
    if zeros != 0 or kind != 8 or len(body) != count:
        raise ValueError(f"it begins with {data[:4].hex()} and has {len(body)} bytes of the shape {shape}; an IDX file of bytes begins "
                         "with 000008 and has one byte for each")
    return shape, body


def write_npy(path, kind, shape, body):
    """Writes a .npy file: kind is NumPy's, such as |u1."""
    text = repr({"descr": kind, "fortran_order": False, "shape": shape})
    text += " " * (-(len(text) + 11) % 64) + "\n"
    with open(path + ".part", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + body)
    os.replace(path + ".part", path)


def fetched(folder):
    """Makes the folder's files. Raises Refused."""
    os.makedirs(folder, exist_ok=True)
    package = downloaded(FASHION, folder)
    wanted = dict(FILES)
    try:
        for name, data in debian_archive.members(package):
            stem = os.path.basename(name)
            stem = stem[:-3] if stem.endswith(".gz") else stem
            if stem not in wanted:
                continue
            shape, body = of_idx(gzip.decompress(data) if name.endswith(".gz") else data)
            to = wanted.pop(stem)
            if to.endswith("classes"):
                numbers = array.array("i", list(body))
                if sys.byteorder == "big":
                    numbers.byteswap()
                write_npy(os.path.join(folder, to + ".npy"), "<i4", shape, numbers.tobytes())
            else:
                write_npy(os.path.join(folder, to + ".npy"), "|u1", (*shape, 1), body)
    except (ValueError, struct.error, OSError) as fault:
        raise Refused(f"{package} is not read: {fault}") from fault
    if wanted:
        raise Refused(f"{package} lacks {', '.join(wanted)}")


def main():
    parser = argparse.ArgumentParser(description="Gets Fashion-MNIST as .npy files, and prints their folder.")
    parser.add_argument("folder", help="where the package and the files are kept")
    given = parser.parse_args()
    try:
        fetched(os.path.abspath(given.folder))
    except (Refused, OSError) as fault:
        sys.exit(f"fetch.py: {fault}")
    print(os.path.abspath(given.folder))


if __name__ == "__main__":
    main()
