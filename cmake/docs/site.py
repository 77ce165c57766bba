#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes what MkDocs and doxygen read, from the repository's documents, headers and examples.

    site.py ROOT OUT [--ran NAME=COMMAND=FILE]... [--plans FILE]

OUT/pages gets the documents with their links mended, a page for each header of operators, with what plans.cpp has printed of it,
and the tutorial, whose outputs are those of runs; OUT/headers the public headers as doxygen follows them;
OUT/mkdocs.yml the site's configuration. A public function without a comment is an error. No fact is written here: all are read.
"""
import argparse
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from errors import examples, numbers_of
from headers import declarations_of, head_of, is_elsewhere, is_function, is_place, name_of, signature, without_details
from prose import doxygen_comment, doxygen_declaration, markdown, prose, sentence_case


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def page(*parts):
    return "\n\n".join(part for part in parts if part) + "\n"


def table(head, rows):
    return "\n".join([f"| {head} |", "|---" * (head.count("|") + 1) + "|"] + [f"| {row} |" for row in rows])


def documents(root, pages):
    """Copies the documents and their drawings; README.md becomes the first page."""
    moved = {"README.md": "index.md"} | {f"{name.upper()}.md": f"inside/{name}.md" for name in ("design", "contributing", "changelog")}
    for source in sorted((root / "docs").rglob("*.md")):
        moved[str(source.relative_to(root))] = str(source.relative_to(root / "docs"))
    for drawing in sorted((root / "docs").rglob("*.svg")):
        write(pages / drawing.relative_to(root / "docs"), drawing.read_text())
    del moved["docs/README.md"]  # a list of documents, which the site has anyway
    for source, place in moved.items():
        up = "../" * place.count("/")
        text = (root / source).read_text().replace("](docs/README.md)", f"]({up}reference.md)")
        write(pages / place, re.sub(r"<!--.*?-->\n", "", text.replace("](docs/", f"]({up}")))


def plans_of(path):
    """Returns what cmake/docs/plans.cpp has printed, as the rows of a table for each page."""
    rows = {}
    for line in path.read_text().splitlines() if path else []:
        name, call, *facts = line.split("|")
        rows.setdefault(name, []).append(f"`{call}` | {' | '.join(facts)}")
    return rows


PLANS = """Dry runs on data=4 x model=2, with these tensors. Payload and messages are those of the process with most; the last two columns
are of the gradients of all operands, from one of the result under the result's spec."""


def tensors_of(root, rows):
    """Returns the definitions of what the calls of these rows name, from cmake/docs/plans.cpp."""
    text = (root / "cmake/docs/plans.cpp").read_text()
    made = re.findall(r"^    (const \w+ (\w+)(?: = |\{)[^;]*;)", text, flags=re.M)
    calls = " ".join(row.split("` |")[0] for row in rows)
    return "\n".join(re.sub(r"\s+", " ", code) for code, name in made if re.search(rf"\b{name}\b", calls))


def documented(root, room):
    """Returns the headers of a room that users call: what each opens with, and what it declares."""
    found = []
    for path in sorted((root / "include/tessera" / room).rglob("*.hpp")):
        text = path.read_text()
        head = head_of(text)
        example = [line for line in head if line.startswith("    ")]
        declared = [one for one in declarations_of(without_details(text))
                    if one.comment and not all(is_elsewhere(text) for text in one.texts)]
        called = any(is_function(text) for one in declared for text in one.texts) or (declared and room == "nn")
        if "detail" not in path.parts and called and example and not any("detail::" in line for line in example):
            found.append((path, head, declared))
    return found


def thrown_by_all(root):
    """Returns what the head of tessera.hpp says of errors that every operator throws."""
    return next(part for part in markdown(head_of((root / "include/tessera/tessera.hpp").read_text())).split("\n\n")
                if part.startswith("Every operator throws"))


# What has pages beside the operators themselves.
GROUPS = {"op": "Operators", "manual": "Manual mode", "grad": "Gradients", "nn": "Layers and optimizers", "io": "In and out"}


def operators(root, pages, plans):
    """Writes a page for each header of these rooms that users call; returns their names and titles by group."""
    made, index = {}, []
    unused = set(plans) | set(re.findall(r'ROW\("(\w+)"', (root / "cmake/docs/plans.cpp").read_text()))
    numbers, broken = numbers_of(root), {}  # rules, by the function that an example calls
    for rule, (call, *_) in examples(root)[0].items():
        if function := re.match(r"(\w+)[<(]", call):
            broken.setdefault(function[1], []).append(rule)
    for room, group in GROUPS.items():
        rows = []
        for path, head, declared in documented(root, room):
            name, title = path.stem, sentence_case(path.stem.replace("_", " "))
            placed = " Functions also take the place of their call as the last argument, which is left out here."
            calls = " Functions also take a `CallOptions` as the last argument, which is left out here: a sharding, a contract, `into(y)`, or several in braces."
            out = [f"# {title}", markdown(head), f"Header: `tessera/{path.relative_to(root / 'include/tessera')}`."
                   + next((said for sign, said in (("const CallOptions& call", calls), ("Where where", placed))
                           if any(sign in text for one in declared for text in one.texts)), "")]
            if room == "op":
                unused.discard(name)
            if room == "op" and name in plans:
                out += ["## What it communicates", PLANS, f"```cpp\n{tensors_of(root, plans[name])}\n```",
                        table("call | communication | payload | messages | its gradients | payload", plans[name])]
            shown = set()
            for one in declared:
                if not (texts := [text for text in one.texts if not is_place(text)]):
                    continue
                fresh = [n for n in dict.fromkeys(name_of(text) for text in one.texts) if n not in shown]
                if fresh:
                    out.append("## " + ", ".join(f"`{n}`" for n in fresh[:6]))
                    shown.update(fresh)
                out.append("```cpp\n" + "\n".join(signature(text) for text in texts) + "\n```")
                out.append(markdown(one.comment))
            rules = sorted((numbers[rule], rule) for function in shown for rule in broken.get(function, []))
            if rules:
                out += ["## Errors", "Rules that a call can break, with an example of each; those of shardings and letters hold for all "
                        "operators that take them.",
                        "\n".join(f"- [{number}. {rule.replace('_', ' ')}](../errors.md#r{number})" for number, rule in rules)]
            place = f"{'operators' if room == 'op' else room}/{name}.md"
            write(pages / place, page(*out))
            first = re.split(r"(?<=[.;:])\s", " ".join(head[: head.index("")]))[0].rstrip(":;")
            made.setdefault(group, []).append((place, title))
            rows.append(f"[{title}]({'' if room == 'op' else '../' + room + '/'}{name}.md) | {prose(first)}")
        index += [f"## {group}" if room != "op" else "", table(f"{group.lower()} | what they do", rows)]
    if unused:
        sys.exit(f"cmake/docs/plans.cpp speaks of {unused}, which have no page")
    write(pages / "operators/index.md", page(
        "# Operators", "A page for each header of operators, and of gradients, layers and files, made from the header: its example, which a test "
        "runs, its laws, and what each function returns, communicates and throws. [Capabilities](../capabilities.md) lists them by theme.",
        thrown_by_all(root), *index))
    return made


def lines_printed(path):
    """Returns what a run has printed, as one sees it on a terminal; of a long text its beginning and end."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", path.read_text(errors="replace")).strip("\n")
    lines = [line.split("\r")[-1].rstrip() for line in text.split("\n")]
    return lines if len(lines) <= 120 else lines[:80] + ["..."] + lines[-35:]


def tutorial(root, pages, ran):
    """Writes a page for each numbered example: its comments are the prose, its code, its output and its drawings the rest."""
    made = []
    for name, (command, output) in ran.items():
        lines = (root / f"examples/{name}.cpp").read_text().split("\n")
        start = next(i for i, line in enumerate(lines) if not line.startswith("//"))
        intro = [line[3:] for line in lines[:start] if line.startswith("// Lesson") or not re.match(r"// [\w-]+: |//$", line)]
        commands = [line.strip() for line in intro if line.startswith("  ")]
        number, opening = re.fullmatch(r"Lesson (\d+): (.*)", " ".join(line for line in intro if line.strip() not in commands)).groups()
        title = f"{number}. {sentence_case(name[3:].replace('_', ' '))}"
        out, block, comment = [f"# {title}", prose(sentence_case(opening))], [], []
        if commands:
            out.append("```sh\n" + "\n".join(commands) + "\n```")
        for line in lines[start:] + ["// "]:
            if re.match(r"///? ", line):  # between functions: prose
                code = "\n".join(block).strip("\n")
                out.append(code and f"```cpp\n{code}\n```")
                block = []
                comment.append(re.sub(r"^///? ", "", line))
                continue
            if comment:
                out.append(prose(" ".join(comment)))
                comment = []
            block.append(line)
        printed = "\n".join(lines_printed(pathlib.Path(output)))
        drawings = sorted(pathlib.Path(output).parent.glob(f"lesson_{number}*.svg"))
        for drawing in drawings:
            write(pages / "tutorial" / drawing.name, drawing.read_text())
        out += ["## What it prints", f"As a test runs it, `{command}`:", f"```text\n{printed}\n```"]
        if drawings:
            out += ["## What it draws", *(f"![{drawing.name}, as the run has drawn it]({drawing.name})" for drawing in drawings)]
        write(pages / "tutorial" / f"{name}.md", page(*out, f"The whole source is `examples/{name}.cpp`."))
        made.append((f"tutorial/{name}.md", title))
    return made


def configuration(root, out, lists):
    """Writes the site's configuration: cmake/docs/mkdocs.yml with the lists of pages that are made, by group."""
    text = (root / "cmake/docs/mkdocs.yml").read_text()
    for path in sorted((root / "docs").rglob("*.md")):
        if path.name != "README.md" and f": {path.relative_to(root / 'docs')}\n" not in text:
            sys.exit(f"cmake/docs/mkdocs.yml does not list {path.relative_to(root)}")
    for name, made in lists.items():
        entries = [f"      - \"{title}\": {place}" for place, title in made.pop(None, [])]
        for group, inner in made.items():
            entries += [f"      - {group}:"] + [f"          - \"{title}\": {place}" for place, title in inner]
        text = text.replace(f"      - {name}\n", "\n".join(entries) + "\n")
    write(out / "mkdocs.yml", text)


def rooms_of(root):
    """Returns what each room holds, as docs/capabilities.md says."""
    return dict(re.findall(r"^\| (\w+) \| (.*) \|$", (root / "docs/capabilities.md").read_text().split("## What is where")[1], flags=re.M))


def reference(root, out):
    """Writes the headers for doxygen: a group a header, within one a room, and a comment at each declaration. Returns which
    functions have none."""
    rooms = rooms_of(root)
    groups = ["/// @namespace tessera", "/// Everything that is promised. Namespace `tessera::detail` is not, and is not listed here."]
    bare = []
    for room, holds in rooms.items():
        groups += [f"/// @defgroup room_{room} {room}", f"/// {sentence_case(holds)}."]
        for path in sorted((root / "include/tessera" / room).rglob("*.hpp")):
            place = path.relative_to(root / "include/tessera")
            if "detail" in place.parts or str(place) in ("base/rule_table.hpp", "show/format.hpp"):  # no declarations of tessera's
                continue
            text = without_details(path.read_text())
            group = re.sub(r"\W", "_", str(place))
            lines = [f"/// @defgroup {group} {place}", f"/// @ingroup room_{room}", *doxygen_comment(head_of(text)), "", "namespace tessera {",
                     f"/// @addtogroup {group}", "/// @{"]
            for one in declarations_of(text):
                here = [text for text in one.texts if not is_elsewhere(text) and not is_place(text)]
                if not one.comment and here and all(is_function(text) for text in here):
                    bare.append(f"{path}: {name_of(here[0])}")
                for declared in here:
                    if not re.match(r"template <>|(extern|static_assert|namespace|friend)\b", declared):
                        lines += ["", *doxygen_comment(one.comment), doxygen_declaration(declared)]
            write(out / "headers/tessera" / place, "\n".join(lines + ["/// @}", "}", ""]))
    write(out / "headers/groups.dox", "\n".join(groups) + "\n")
    return bare


REFERENCE = """# Reference

Every public type and function, by room and header: <a href="api/modules.html">all rooms</a>, and <a href="api/annotated.html">all types</a>.
A header opens with an example, which a test runs, and its laws. `tessera::detail` is not listed: it may change."""


def reference_page(root):
    """Returns the page that leads to what doxygen makes: its pages of rooms."""
    rows = [f"<a href=\"api/group__room__{room}.html\">{room}</a> | {holds}" for room, holds in rooms_of(root).items()]
    return page(REFERENCE, table("room of `include/tessera/` | holds", rows))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--ran", action="append", default=[])
    parser.add_argument("--plans", type=pathlib.Path)
    arguments = parser.parse_args()
    root, out = arguments.root, arguments.out
    pages = out / "pages"
    documents(root, pages)
    write(pages / "site.css", (root / "cmake/docs/site.css").read_text())
    write(pages / "search.js", (root / "cmake/docs/theme/search.js").read_text())
    write(out / "theme/main.html", (root / "cmake/docs/theme/main.html").read_text())
    write(pages / "reference.md", reference_page(root))
    ran = {name: (command, output) for name, command, output in (one.split("=", 2) for one in arguments.ran)}
    configuration(root, out, {"TUTORIAL": {None: tutorial(root, pages, ran)},
                              "OPERATORS": operators(root, pages, plans_of(arguments.plans))})
    if bare := reference(root, out):
        sys.exit("These functions have no comment; say what each returns, communicates and throws:\n" + "\n".join(bare))


main()
