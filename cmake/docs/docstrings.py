#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docstrings.py ROOT: checks what the comments of public functions say, function by function.

A function that programs call says, itself or by the head of its header, what it communicates and what it throws; an operator also in
which shapes. A comment for functions of several names names them, or speaks of all. None sends a reader to a planner that the reference
leaves out. And a header that tessera/tessera.hpp does not include
is included by one that its head names.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from headers import declarations_of, head_of, is_elsewhere, is_function, name_of, without_details

WORDS = {"what it communicates": r"[Cc]ommunicat", "what it throws": r"[Tt]hrow|[Ee]rrors"}
SHAPES = r"\(\w+(?:, [\w.]+)*,? *(?:\.\.\.)?\)|\b(?:shape|extents?|scalar|elements?|dimensions?|lines?|sharding|spec)\b"
OF_ALL = r"^(The same|These overloads|Over all|Operands and|Returns the reduction|Returns? .*by (name|Kind))|alpha \* a"  # how comments speak of several functions
CALLED = ("op", "manual", "grad", "nn", "io")  # the rooms whose functions programs call


def functions_of(root):
    """Yields (header, name, what is said of it, comments that do not speak of it) for every public function, those of one name together."""
    for room in CALLED:
        for path in sorted((root / "include/tessera" / room).rglob("*.hpp")):
            if "detail" in path.parts:
                continue
            text = without_details(path.read_text())
            head, said, others = " ".join(head_of(text)), {}, {}
            for one in declarations_of(text):
                comment = " ".join(one.comment)
                names = list(dict.fromkeys(name_of(t) for t in one.texts if is_function(t) and not is_elsewhere(t)))
                for name in names:
                    said.setdefault(name, []).append(comment)
                    if name != names[0] and not re.search(OF_ALL, comment) and not speaks_of(name, comment):
                        others.setdefault(name, []).append(comment)
            for name, comments in said.items():
                yield path.relative_to(root / "include/tessera"), name, head + " " + " ".join(comments), others.get(name, [])


def speaks_of(name, comment):
    """Returns whether a comment has a function's name, or the words of it: logical_or is "or", random_normal "normal"."""
    return any(re.search(rf"\b{word}", comment) for word in (name, *name.split("_")))


def promised(root):
    """Returns the names that the reference has."""
    names = set()
    for path in (root / "include/tessera").rglob("*.hpp"):
        if "detail" not in path.parts:
            names.update(name_of(text) for one in declarations_of(without_details(path.read_text())) for text in one.texts)
    return names


def left_out(root):
    """Returns the headers that a program reaches neither by tessera/tessera.hpp nor by one that its head names."""
    folder = root / "include/tessera"
    umbrella = (folder / "tessera.hpp").read_text()
    includes = {}
    for path in folder.rglob("*.hpp"):
        text = path.read_text().split("#if defined(TESSERA_IMPLEMENTATION)")[0]
        includes[str(path.relative_to(folder))] = re.findall(r"#include <tessera/([^>]+)>", text)
    named = [re.sub("^tessera/", "", name) for name in re.findall(r"[\w/]+\.hpp", " ".join(head_of(umbrella)))]
    reached, left = set(), ["tessera.hpp", *named]
    while left:
        header = left.pop()
        if header not in reached:
            reached.add(header)
            left += includes.get(header, [])
    return [name for name in named if name not in includes], sorted(n for n in includes if n not in reached and "/detail/" not in n)


def main():
    root = pathlib.Path(sys.argv[1])
    names, wrong, count = promised(root), [], 0
    for header, name, said, others in functions_of(root):
        count += 1
        wrong += [f"{header}: {name} does not say {what}" for what, words in WORDS.items() if not re.search(words, said)]
        wrong += [f"{header}: {name} has the comment of another function: {comment}" for comment in others]
        if header.parts[0] == "op" and not re.search(SHAPES, said):
            wrong.append(f"{header}: {name} does not say which shapes it takes and returns")
        wrong += [f"{header}: {name} speaks of {planner}, which the reference does not have"
                  for planner in re.findall(r"\bplan_\w+(?=[(\s,.;:)])", said) if planner not in names and planner + ".hpp" not in said]
    missing, unknown = left_out(root)
    wrong += [f"tessera.hpp names {name}, which is no header" for name in missing]
    wrong += [f"tessera.hpp neither includes {name} nor names a header that does" for name in unknown]
    if wrong:
        sys.exit("\n".join(wrong) + "\nCONTRIBUTING.md says what the comment of a public function holds.")
    print(f"{count} public functions say what they communicate and throw")


main()
