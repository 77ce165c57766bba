# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of examples/vision_transformer/fetch.py: images are read from a package of Debian, and what is none is refused. No network.

    python3 tests/nn/vision_and_speech_of_hugging_face/fetch_test.py
"""
import contextlib
import gzip
import hashlib
import io
import os
import struct
import sys
import tarfile
import tempfile
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples", "vision_transformer"))
import fetch  # noqa: E402
from download import DebianPackage, Refused  # noqa: E402


def idx(shape, body):
    return struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + body


def deb(files):
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:xz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo("./usr/share/images/" + name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    data = inner.getvalue()
    head = f"{'data.tar.xz':16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n"
    return b"!<arch>\n" + head.encode() + data + b"\n" * (len(data) % 2)


IMAGES = {"train-images-idx3-ubyte.gz": gzip.compress(idx((3, 2, 2), bytes(range(12)))),
          "train-labels-idx1-ubyte.gz": gzip.compress(idx((3,), bytes([2, 0, 255]))),
          "t10k-images-idx3-ubyte": idx((1, 2, 2), bytes([9, 8, 7, 6])), "t10k-labels-idx1-ubyte": idx((1,), b"\1"), "README": b"odd"}


class Fetch(unittest.TestCase):
    def fetched(self, folder, package):
        pinned = DebianPackage("made-images", "1", hashlib.sha256(package).hexdigest(), len(package), "MIT")
        with open(os.path.join(folder, pinned.file), "wb") as file:
            file.write(package)
        with unittest.mock.patch.object(fetch, "FASHION", pinned), contextlib.redirect_stderr(io.StringIO()):
            fetch.fetched(folder)

    def test_files_are_those_of_the_package(self):
        with tempfile.TemporaryDirectory() as folder:
            self.fetched(folder, deb(IMAGES))
            for name, kind, shape, body in (("learn.images", "|u1", (3, 2, 2, 1), bytes(range(12))),
                                            ("learn.classes", "<i4", (3,), struct.pack("<3i", 2, 0, 255)),
                                            ("held_out.images", "|u1", (1, 2, 2, 1), bytes([9, 8, 7, 6])),
                                            ("held_out.classes", "<i4", (1,), struct.pack("<i", 1))):
                with open(os.path.join(folder, name + ".npy"), "rb") as file:
                    data = file.read()
                size = struct.unpack_from("<H", data, 8)[0]
                self.assertEqual(data[:8], b"\x93NUMPY\x01\x00")
                self.assertEqual((10 + size) % 64, 0)
                self.assertEqual(eval(data[10:10 + size]), {"descr": kind, "fortran_order": False, "shape": shape})
                self.assertEqual(data[10 + size:], body, name)

    def test_what_is_refused(self):
        short = dict(IMAGES, **{"t10k-images-idx3-ubyte": idx((2, 2, 2), b"1234")})
        less = {name: data for name, data in IMAGES.items() if "labels" not in name}
        for package, words in ((deb(short), "has 4 bytes of the shape"), (b"none", "is no Debian package"),
                               (deb(less), "lacks train-labels-idx1-ubyte, t10k-labels-idx1-ubyte")):
            with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(Refused, words):
                self.fetched(folder, package)


if __name__ == "__main__":
    unittest.main()
