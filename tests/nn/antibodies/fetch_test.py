# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of examples/train_protein_encoder/fetch.py: antibodies are read from R's table in a package of Debian. No network.

    python3 tests/nn/antibodies/fetch_test.py
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
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples", "train_protein_encoder"))
import fetch  # noqa: E402
import r_data  # noqa: E402
from download import DebianPackage, Refused  # noqa: E402

NAMES, NULL = 0x400 | 2, struct.pack(">i", 254)
HEAD = b"X\n" + struct.pack(">3i", 3, 0x40000, 0x30500) + struct.pack(">i", 5) + b"UTF-8"


def number(*values):
    return struct.pack(f">{len(values)}i", *values)


def text(value):
    return number(9, -1) if value is None else number(9, len(value)) + value.encode()


def texts(values):
    return number(16, len(values)) + b"".join(map(text, values))


def pairs(first, *rest):
    """A list of pairs (name, value); a name that was seen before is a number."""
    name, value = first
    own = number(1) + text(name) if isinstance(name, str) else number(name << 8 | 255)
    return number(NAMES) + own + value + (pairs(*rest) if rest else NULL)


def listed(values, attributes):
    return number(0x200 | 19, len(values)) + b"".join(values) + attributes


def table(columns):
    return listed(list(columns.values()), pairs(("names", texts(list(columns)))))


def data_base(objects):
    """Returns the bytes of an index and of its data."""
    data, places = b"", {}
    for name, value in objects.items():
        plain = HEAD + value
        packed = struct.pack(">I", len(plain)) + zlib.compress(plain)
        places[name] = number(13, 2, len(data), len(packed))
        data += packed
    inner = listed(list(places.values()), pairs(("names", texts(list(places)))))
    index = listed([inner], pairs((1, texts(["variables"]))))  # the symbol "names" again
    return gzip.compress(HEAD + index), data


def deb(files):
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:xz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo("./usr/lib/R/site-library/tigger/data/" + name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    data = inner.getvalue()
    head = f"{'data.tar.xz':16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n"
    return b"!<arch>\n" + head.encode() + data + b"\n" * (len(data) % 2)


class Fetch(unittest.TestCase):
    def test_objects_of_r_are_read(self):
        levels = number(0x200 | 13, 3, 2, r_data.NOT_THERE, 1) + pairs(("levels", texts(["a", "b"])))
        numbers = number(14, 2) + struct.pack(">2d", 0.5, -2)
        index, data = data_base({"one": table({"x": numbers, "kind": levels}), "two": number(10, 2, 1, r_data.NOT_THERE)})
        found = r_data.tables(index, data)
        self.assertEqual(found["one"](), {"x": [0.5, -2], "kind": ["b", None, "a"]})
        self.assertEqual(found["two"](), [1, None])
        with self.assertRaisesRegex(ValueError, "R's kind 8;"):
            r_data.Reader(HEAD + number(8, 0)).item()
        with self.assertRaisesRegex(ValueError, "begins with b'A"):
            r_data.Reader(b"A\n")

    def test_chains_are_whole_and_productive(self):
        rows = [(1, "CAG...GTGTGCTGGTGG", "TGCTGG"),  # Q V C W W, whose loop is CW
                (1, "CAGGTGTGCTGGTGG", "TGCTGG"),  # the same again
                (0, "GAGGTGTGCTGGTGG", "TGCTGG"),  # is not productive
                (1, "...CAGGTGTGCTGG", "TGCTGG"),  # begins late
                (1, "CAGTAATGCTGG", "TGCTGG"),  # ends within
                (1, "CAGNTGTGCTGG", "TGCTGG"),  # has an unknown base
                (1, "CAGGTG", "TGCTGG"),  # has no loop
                (1, "GAGGTGTGCTGG", None), (1, "GAGGTGTGCGCTTGG", "TGCGCTTGG")]
        columns = dict(zip(("productive", "sequence_alignment", "junction"), map(list, zip(*rows))))
        self.assertEqual(fetch.chains(columns), {"QVCWW": "CW", "EVCAW": "CAW"})

    def test_no_loop_is_both_learned_and_held_out(self):
        codons = {"A": "GCT", "D": "GAT", "E": "GAA", "F": "TTT", "G": "GGT", "H": "CAT", "I": "ATT", "K": "AAA"}
        loops = ["TGT" + "".join(codons[c] for c in (a, b, c)) + "TGG" for a in codons for b in codons for c in codons]
        alignments = [first + loop + last for loop in loops for first in ("CAG", "GAG") for last in ("", "GGT")]
        columns = {"productive": number(10, len(alignments), *[1] * len(alignments)), "sequence_alignment": texts(alignments),
                   "junction": texts([loop for loop in loops for _ in range(4)])}
        index, data = data_base({"AIRRDb": table(columns)})
        package = deb({"Rdata.rdx": index, "Rdata.rdb": data, "Rdata.rds": b"odd"})
        with tempfile.TemporaryDirectory() as folder:
            self.fetched(folder, package)
            learned, held_out = (self.read(folder, name) for name in ("learn", "held_out"))
        self.assertEqual(len(learned) + len(held_out), len(alignments))
        self.assertTrue(0.02 < len(held_out) / len(alignments) < 0.08)
        self.assertFalse({chain[1:6] for chain in learned} & {chain[1:6] for chain in held_out})

    def test_other_packages_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            for files in ({"Rdata.rdx": b"odd", "Rdata.rdb": b""}, {}):
                with self.assertRaisesRegex(Refused, "is not read"):
                    self.fetched(folder, deb(files))

    @staticmethod
    def read(folder, name):
        with open(os.path.join(folder, name + ".fasta")) as file:
            return [line.strip() for line in file if not line.startswith(">")]

    @staticmethod
    def fetched(folder, package):
        pinned = DebianPackage("made-antibodies", "1", hashlib.sha256(package).hexdigest(), len(package), "MIT")
        with open(os.path.join(folder, pinned.file), "wb") as file:
            file.write(package)
        with unittest.mock.patch.object(fetch, "TIGGER", pinned), contextlib.redirect_stderr(io.StringIO()):
            fetch.fetched(folder)


if __name__ == "__main__":
    unittest.main()
