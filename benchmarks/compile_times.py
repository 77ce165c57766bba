#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what compiling costs: processor seconds, memory and bytes of machine code of four programs' objects, and of the library.

    cmake --preset test
    python3 benchmarks/compile_times.py build/test/tests/flags_tessera
    python3 benchmarks/compile_times.py build/test/tests/flags_tessera --programs stencil --ways header-only
    python3 benchmarks/compile_times.py build/test/tests/flags_tessera --library --json compile_times.1.json     # for cmake/docs/figures.py

The programs are those of tests/build/compile_cost/: a stencil, conjugate gradients on DynamicTensors, a small network of
convolutions and a Transformer block, each as a newcomer would write it. Ways: `read` (-fsyntax-only), `header-only` (an object at
-O2) and `with the library` (the same with TESSERA_COMPILED). The umbrella header is read alone, too. With --library the sources of
tessera::compiled are compiled, one after the other. The file names the include folders and definitions of tessera::tessera. Seconds
are the processor's, the system's share included, of one compiler at a time; other programs on the machine prolong them a little.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from written import write_json

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ["stencil", "conjugate_gradient", "small_cnn", "transformer_block"]
WAYS = {"read": ["-fsyntax-only"], "header-only": ["-O2"], "with the library": ["-O2", "-DTESSERA_COMPILED"]}
OPTIONS = ["-std=c++20", "-fopenmp", "-fno-math-errno"]
PARTS = 2
LIBRARY = {"the rest": ("TESSERA_IMPLEMENTATION", "tessera/tessera.hpp"),
           **{f"kernels, part {part}": (f"TESSERA_KERNEL_PART={part}", "tessera/kernel/use_element.hpp") for part in range(PARTS)},
           **{f"derivatives, part {part}": (f"TESSERA_DERIVATIVES_PART={part}", "tessera/grad/functions.hpp") for part in range(PARTS)}}


def code_of(path):
    """Bytes of machine code in an object."""
    said = subprocess.run(["size", "-A", path], capture_output=True, text=True, check=True).stdout
    return sum(int(size) for name, size in re.findall(r"^(\.text\S*)\s+(\d+)", said, flags=re.M))


def compiled(compiler, options, source):
    """(processor seconds, MiB at its peak, bytes of machine code) of one source."""
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "made.o")
        process = subprocess.Popen([*compiler, *options, "-c", source, "-o", made])
        _, status, used = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"compile_times.py: {source} does not compile")
        code = code_of(made) if "-fsyntax-only" not in options else 0
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, code


def main():
    take = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    take.add_argument("flags", help="the include folders and definitions of tessera::tessera, as g++ reads them from @file")
    take.add_argument("--compiler", default="g++")
    take.add_argument("--programs", nargs="*", default=PROGRAMS, choices=PROGRAMS)
    take.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    take.add_argument("--library", action="store_true", help="compile the sources of tessera::compiled, too")
    take.add_argument("--json", help="a file that is written too, for cmake/docs/figures.py")
    asked = take.parse_args()
    compiler = [*asked.compiler.split(), "@" + asked.flags, *OPTIONS]
    version = subprocess.run([*asked.compiler.split(), "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    if "clang" not in version:
        compiler += ["-fno-ipa-cp", "-fno-ipa-sra"]
    times, counted = {}, {}

    def measure(case, options, source):
        seconds, peak, code = compiled(compiler, options, source)
        times[case] = {"Tessera": seconds * 1e3}
        counted[case] = {"peak, MiB": peak} | ({"code, KiB": code / 1024} if code else {})
        print(f"{case.partition('/')[2]:50} {seconds:8.1f} s {peak:8.0f} MiB" + (f" {code / 1024:8.0f} KiB of code" if code else ""), flush=True)

    folder = ROOT / "tests/build/compile_cost"
    if "read" in asked.ways:
        measure("compiling/the umbrella header, read", WAYS["read"], str(folder / "umbrella.cpp"))
    for program in asked.programs:
        for way in asked.ways:
            measure(f"compiling/{program.replace('_', ' ')}, {way}", WAYS[way], str(folder / f"{program}.cpp"))
    if asked.library:
        total = 0
        with tempfile.TemporaryDirectory() as place:
            for name, (definition, header) in LIBRARY.items():
                source = os.path.join(place, "source.cpp")
                pathlib.Path(source).write_text(f"#include <{header}>\n")
                case = f"compiling/the library, {name}"
                measure(case, ["-O2", "-DTESSERA_COMPILED", f"-DTESSERA_KERNEL_PARTS={PARTS}", "-D" + definition], source)
                total += times[case]["Tessera"]
        print(f"{'the library, all sources':50} {total / 1e3:8.1f} s")
    if asked.json:
        write_json(asked.json, times, [], {"compiler": version}, counted)


main()
