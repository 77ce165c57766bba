# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the tables in a package of R, with Python's standard library alone: numbers, texts and factors, by columns.

    table = tables(index, data)["AIRRDb"]()               # of the bytes of data/Rdata.rdx and data/Rdata.rdb
    table["productive"], table["sequence_alignment"]      # lists; what is not there is None

The files are R's "lazy-load" data base: the index names the place of each object in the other file, where each is compressed. Source:
R Internals, sections 1.8 and 1.9.
"""
import bz2
import gzip
import lzma
import struct
import zlib

NOTHING = {254: None, 253: None, 251: None, 242: None, 241: None}  # NULL, environments and symbols that stand for themselves
NOT_THERE = -2**31  # an integer


class Reader:
    """R's serialized objects: vectors as lists, pairs of lists as lists of (name, value), what has names as dictionaries."""

    def __init__(self, data):
        if data[:2] != b"X\n":
            raise ValueError(f"an object begins with {data[:2]!r}; R's binary form begins with b'X\\n'")
        self.data, self.place, self.seen = data, 2, []
        version, _, _ = self.numbers("i", 3)
        if version not in (2, 3):
            raise ValueError(f"an object has R's form {version}; forms 2 and 3 are read")
        if version == 3:
            self.text(*self.numbers("i", 1))  # the encoding

    def numbers(self, kind, count):
        values = struct.unpack_from(f">{count}{kind}", self.data, self.place)
        self.place += struct.calcsize(f">{count}{kind}")
        return list(values)

    def text(self, length):
        if length < 0:
            return None
        self.place += length
        return self.data[self.place - length:self.place].decode("utf-8", "replace")

    def item(self):
        flags, = self.numbers("i", 1)
        kind, has_attributes, has_tag = flags & 255, flags & 0x200, flags & 0x400
        if kind in NOTHING:
            return NOTHING[kind]
        if kind == 255:  # again
            return self.seen[(flags >> 8 or self.numbers("i", 1)[0]) - 1]
        if kind == 1:  # a symbol
            self.seen.append(self.item())
            return self.seen[-1]
        if kind == 2:  # a list of pairs
            if has_attributes:
                self.item()
            name = self.item() if has_tag else None
            value = self.item()
            return [(name, value), *(self.item() or [])]
        count, = self.numbers("i", 1)
        if kind == 9:
            return self.text(count)
        if kind in (10, 13):
            values = [None if x == NOT_THERE else x for x in self.numbers("i", count)]
        elif kind == 14:
            values = self.numbers("d", count)
        elif kind in (16, 19):
            values = [self.item() for _ in range(count)]
        else:
            raise ValueError(f"an object of R's kind {kind}; numbers, texts and lists are read")
        attributes = dict(self.item()) if has_attributes else {}
        if "levels" in attributes:  # a factor
            return [x and attributes["levels"][x - 1] for x in values]
        return dict(zip(attributes["names"], values)) if "names" in attributes else values


def tables(index, data):
    """Returns a function for each object of a data base, which reads it. Raises ValueError."""
    def reading(place, length):
        size, = struct.unpack_from(">I", data, place)
        ways = {b"2": bz2.decompress, b"Z": lzma.decompress}
        way = ways.get(data[place + 4:place + 5])
        plain = way(data[place + 5:place + length]) if way else zlib.decompress(data[place + 4:place + length])
        if len(plain) != size:
            raise ValueError(f"an object has {len(plain)} bytes, and its head says {size}")
        return Reader(plain).item()
    return {name: lambda at=at: reading(*at) for name, at in Reader(gzip.decompress(index)).item()["variables"].items()}
