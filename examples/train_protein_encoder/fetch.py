# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gets real antibodies: 17,196 heavy chains from the blood of a person, sequenced from B cells, from a package of Debian.

    python3 examples/train_protein_encoder/fetch.py antibodies      # 4 MiB; prints the folder

The folder keeps the package, whose version and SHA-256 are pinned here, and gets two files of FASTA, learn.fasta and held_out.fasta: each
chain once, translated. Chains are held out by their third loop, a twentieth of all loops, so that no loop is in both files.
A package that is there already is not downloaded again. Without a network, put it into the folder by hand. Python's standard library
is all that is needed. Source: the package's AIRRDb; Gadala-Maria, Yaari, Uduman and Kleinstein, "Automated analysis of
high-throughput B-cell sequencing data" (2015).
"""
import argparse
import hashlib
import lzma
import os
import struct
import sys
import zlib

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")]
import debian_archive  # noqa: E402
import r_data  # noqa: E402
from download import DebianPackage, Refused, downloaded  # noqa: E402

TIGGER = DebianPackage("r-cran-tigger", "1.0.1-1", "8718167d854f55e9d86c12be35d018508e459cdcb46843841005496e2083fc7a", 4096736, "CC-BY-SA-4.0")
BASES, LETTERS = "TCAG", "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
CODE = {a + b + c: LETTERS[16 * i + 4 * j + k] for i, a in enumerate(BASES) for j, b in enumerate(BASES) for k, c in enumerate(BASES)}


def translated(bases):
    """Returns a protein's letters; None where a codon is broken by a gap, is unknown or ends it; bases after the last whole codon are left out, is unknown or ends it. Gaps of an alignment are whole codons."""
    codons = [bases[i:i + 3] for i in range(0, len(bases) - 2, 3)]
    letters = [CODE.get(codon, "*") for codon in codons if codon != "..."]
    return None if "*" in letters else "".join(letters)


def chains(table):
    """Returns {a chain's letters: those of its third loop}, of chains that are whole from their first letter on."""
    found = {}
    for productive, bases, loop in zip(table["productive"], table["sequence_alignment"], table["junction"]):
        if productive and loop and not bases.startswith("."):
            whole, part = translated(bases), translated(loop)
            if whole and part and part in whole:
                found.setdefault(whole, part)
    return found


def is_held_out(loop):
    return hashlib.sha256(loop.encode()).digest()[0] * 20 < 256


def fetched(folder):
    """Makes the folder's files. Raises Refused."""
    os.makedirs(folder, exist_ok=True)
    package = downloaded(TIGGER, folder)
    try:
        files = {os.path.basename(name): data for name, data in debian_archive.members(package) if "/data/Rdata." in name}
        found = chains(r_data.tables(files["Rdata.rdx"], files["Rdata.rdb"])["AIRRDb"]())
    except (ValueError, KeyError, IndexError, TypeError, struct.error, zlib.error, lzma.LZMAError, OSError) as fault:
        raise Refused(f"{package} is not read: {fault!r}") from fault
    for name, some in (("learn", [c for c, loop in found.items() if not is_held_out(loop)]),
                       ("held_out", [c for c, loop in found.items() if is_held_out(loop)])):
        path = os.path.join(folder, name + ".fasta")
        with open(path + ".part", "w") as file:
            file.writelines(f">{name} {i}\n{letters}\n" for i, letters in enumerate(some, 1))
        os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description="Gets antibodies' heavy chains as FASTA, and prints their folder.")
    parser.add_argument("folder", help="where the package and the files are kept")
    given = parser.parse_args()
    try:
        fetched(os.path.abspath(given.folder))
    except (Refused, OSError) as fault:
        sys.exit(f"fetch.py: {fault}")
    print(os.path.abspath(given.folder))


if __name__ == "__main__":
    main()
