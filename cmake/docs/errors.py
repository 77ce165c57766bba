#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""errors.py ROOT [--check]: writes docs/errors.md, the page to which messages lead by the numbers of their rules.

Sentences come from include/tessera/base/rule_table.hpp. The calls that break a rule and keep it come from
tests/compile_fail/rules.cpp and tests/op/rules.loopback.cpp, where tests compile and run them; a rule without both is an error.
With --check nothing is written, and a page that would change is an error.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from headers import end_of_bracket
from prose import prose, sentence_case

INTRO = """<!-- cmake/docs/errors.py makes this page. -->

A message ends with the number of the rule that a call breaks, such as `(docs/errors.md#r52)`: what the rule says, a call that
breaks it and one that keeps it stand here under that number. Numbers stay as they are from version to version.

A call whose types break a rule does not compile, and the sentence is the message; the types around it are the facts. Where types
cannot tell, and for dynamic tensors, the exception that is named is thrown, on every process alike, before anything is communicated.
It names the operator, the place of the call and the process, and has the facts in the places in braces. Every call below is
compiled or run by a test, with these tensors; `Grid` is `Mesh<data, model>`, and `Tensor<T, D...>` is
`ShardedTensor<T, Grid, P<D...>>`:
"""


def on_one_line(code):
    return re.sub(r"\s+", " ", re.sub(r"\(\s+", "(", code)).strip()


def calls(text, macro):
    """Returns the expressions of macro(rule, expression), by rule."""
    return {match[2]: on_one_line(text[match.end() : end_of_bracket(text, match.start(1)) - 1])
            for match in re.finditer(rf"^  {macro}(\()(\w+),", text, flags=re.M)}


def numbers_of(root):
    """Returns the number of each rule."""
    text = (root / "include/tessera/base/rule_table.hpp").read_text()
    return {name: int(number) for number, name in re.findall(r"^TESSERA_RULE\(\s*(\d+), (\w+),", text, flags=re.M)}


def examples(root):
    """Returns for each rule the call that breaks it, what happens then, the one that keeps it; and the tensors of all."""
    types = (root / "tests/compile_fail/rules.cpp").read_text()
    run = (root / "tests/op/rules.loopback.cpp").read_text()
    found, kept = {}, calls(types, "KEEPS") | calls(run, "KEEPS")
    for rule, code in re.findall(r"^#(?:el)?if defined\(CASE_(\w+)\)\n  \(void\)(.*?);\n(?=#)", types, flags=re.S | re.M):
        found[rule] = (on_one_line(code)[1:-1], "does not compile", kept.get(rule))
    for rule, code in calls(run, "BREAKS").items():
        found[rule] = (code, "", kept.get(rule))
    tensors = re.search(r"^(  const auto mesh = .*?)^$", run, flags=re.S | re.M)[1]
    return found, re.sub(r"^  ", "", tensors, flags=re.M).rstrip()


def exceptions(root):
    """Returns a table of all exceptions."""
    text = (root / "include/tessera/base/error.hpp").read_text()
    rows = re.findall(r"((?:^/// .*\n)+)class (\w+) : public Error", text, flags=re.M)
    return "\n".join(["## Exceptions", "", "All derive from `tessera::Error`.", "", "| exception | when |", "|---|---|"] +
                     [f"| `{name}` | {prose(' '.join(re.findall('/// (.*)', comment)))} |" for comment, name in rows])


def page(root):
    text = (root / "include/tessera/base/rule_table.hpp").read_text()
    text = text[text.index("#endif") :]
    found, tensors = examples(root)
    string = r"((?:\"(?:\\.|[^\"])*\"\s*)+)"
    rule = re.compile(rf"^// ---- (.*?)$|^TESSERA_RULE\(\s*(\d+), (\w+),\s*(\w+),\s*{string},\s*{string}\)", flags=re.M)
    joined = lambda literals: "".join(re.findall(r"\"((?:\\.|[^\"])*)\"", literals)).replace("\\\"", "\"")
    out, group, count = ["# Errors", INTRO.rstrip(), f"```c++\n{tensors}\n```"], {}, 0  # of a group, by number: a new rule may stand anywhere
    for match in rule.finditer(text):
        heading, number, name, kind = match[1], match[2], match[3], match[4]
        if heading:
            out += [part for _, parts in sorted(group.items()) for part in parts]
            out.append(f"## {sentence_case(heading.split(':')[0])}")
            group = {}
            continue
        count += 1
        if name == "ok":
            continue
        breaks, happens, keeps = found.pop(name, (None, "", None))
        if not breaks or not keeps:
            sys.exit(f"errors.py: the rule {name} needs a call that breaks it and one that keeps it, in tests/compile_fail/rules.cpp "
                     "or tests/op/rules.loopback.cpp")
        facts, said = joined(match[5]), joined(match[6])
        group[int(number)] = [
            f"<a id=\"r{number}\"></a>", f"### {number}. {name.replace('_', ' ')}", prose(sentence_case(said)) + ".",
            f"`{kind.capitalize()}Error`" + (f" at run time, with the facts `{facts}`." if facts else " at run time."),
            f"```c++\n// {happens or 'throws'}:\n{breaks}\n// {'compiles' if happens else 'runs'}:\n{keeps}\n```"]
    if count != len(re.findall(r"^TESSERA_RULE\(", text, flags=re.M)):
        sys.exit("errors.py cannot read every rule of include/tessera/base/rule_table.hpp")
    if found:
        sys.exit(f"errors.py: there are no rules {sorted(found)}")
    out += [part for _, parts in sorted(group.items()) for part in parts]
    return "\n\n".join(out + [exceptions(root)]) + "\n"


def main():
    root = pathlib.Path(sys.argv[1])
    made, place = page(root), root / "docs/errors.md"
    if "--check" not in sys.argv:
        place.write_text(made)
    elif not place.exists() or place.read_text() != made:
        sys.exit("docs/errors.md is not what `python3 cmake/docs/errors.py .` makes; run it")


if __name__ == "__main__":
    main()
