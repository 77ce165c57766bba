#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes what MkDocs and doxygen read, from the repository's documents, headers and examples.

    site.py ROOT OUT [--ran NAME=COMMAND=FILE]... [--plans FILE]

OUT/pages gets the documents with their links mended, a page for each header of operators, the table of errors and the tutorial,
whose outputs are those of FILE; pages of operators a table of what plans.cpp has printed to FILE; OUT/headers the public headers as doxygen follows them; OUT/mkdocs.yml the site's configuration.
A public function without a comment is an error. No fact is written here: all are read.
"""
import argparse
import html
import pathlib
import re
import sys

ROOMS = ["base", "mesh", "spec", "plan", "program", "kernel", "comm", "tensor", "run", "op", "grad", "nn", "io", "show"]

# ---- headers ------------------------------------------------------------------------------------------------------------------


class Declarations:
    """A comment and the declarations that it is for: those up to the next blank line."""

    def __init__(self, comment):
        self.comment = comment
        self.texts = []


def without_details(text):
    """Returns a header's text without its namespaces detail, and with `auto` for results whose types are theirs."""
    text = re.sub(r"^namespace detail \{$.*?^\}  // namespace detail$\n?", "", text, flags=re.S | re.M)
    return re.sub(r"^((?:inline |constexpr )*)(?:typename )?detail::\w+(?:<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>)?(?:::\w+)?\s+(?=\w+\()", r"\1auto ", text,
                  flags=re.M)


def head_of(text):
    """Returns the lines of the comment that a header opens with, without their marks."""
    lines = text.split("\n")
    start = lines.index("/// @file") + 1
    head = []
    for line in lines[start:]:
        if not line.startswith("///"):
            break
        head.append(line[4:] if line.startswith("/// ") else line[3:])
    return head


def declarations_of(text):
    """Returns what a header declares at the level of namespace tessera."""
    found = []
    for part in re.findall(r"^namespace tessera \{$(.*?)^\}  // namespace tessera$", text, flags=re.S | re.M):
        comment, current, piece, depth, continued = [], None, [], 0, False
        for line in part.split("\n"):
            if not piece and (not line.strip() or line.startswith("#")):
                comment, current = [], None
                continued = line.startswith("#define") and line.endswith("\\")
                continue
            if continued:
                continued = line.endswith("\\")
                continue
            if not piece and line.startswith("///"):
                if current is not None:
                    comment, current = [], None
                comment.append(line[4:] if line.startswith("/// ") else line[3:])
                continue
            if not piece and line.startswith("//"):
                continue
            piece.append(line)
            bare = re.sub(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'|//.*", "", line)
            depth += sum(bare.count(c) for c in "({") - sum(bare.count(c) for c in ")}")
            if depth == 0 and re.search(r"[;}]\s*$", bare):
                if current is None:
                    current = Declarations(comment)
                    found.append(current)
                current.texts.append("\n".join(piece))
                piece = []
    return found


def without_template(text):
    """Returns a declaration without its template parameters and its requires clause."""
    if text.startswith("template"):
        text = text[end_of_bracket(text, text.index("<")) :].lstrip()
    if match := re.match(r"requires\s*(?=\()", text):
        text = text[end_of_bracket(text, match.end()) :].lstrip()
    elif text.startswith("requires"):
        text = text.split("\n", 1)[-1].lstrip()
    return text


def end_of_bracket(text, start):
    """Returns the place behind the bracket that is closed for the one at `start`."""
    pairs = {"<": ">", "(": ")"}
    depth, opens, closes = 0, text[start], pairs[text[start]]
    for i in range(start, len(text)):
        depth += (text[i] == opens) - (text[i] == closes and text[i - 1] != "-")
        if depth == 0:
            return i + 1
    return len(text)


def is_function(text):
    head = without_template(text)
    return ("(" in head and not re.match(r"(struct|class|enum|using|concept|namespace|friend|static_assert|extern|union)\b", head)
            and not re.match(r"[^({;]*=", head) and "operator" not in head.split("(")[0])


def is_elsewhere(text):
    """Whether something is a definition of what another place declares, or a guide for deduction."""
    head = without_template(text)
    return not head or "::" in head.split("(")[0].split()[-1] or head.startswith("TESSERA_FUNCTION") and "{" in head or bool(re.match(r"\w+\([^)]*\)\s*->", head))


def signature(text):
    """Returns a declaration without its body, and without the place of the call, which every function takes."""
    if not is_function(text):
        return text
    head = without_template(text)
    template = text[: len(text) - len(head)].rstrip()
    template = re.sub(r"\s+", " ", template).replace("> requires", ">\n  requires")
    parameters = head.index("(")
    end = end_of_bracket(head, parameters)
    name, inside = head[:parameters], re.sub(r"\s+", " ", head[parameters + 1 : end - 1])
    inside = re.sub(r"(?:, |^)Where where = (?:Where::here\(\)|\{\})", "", inside)
    tail = re.match(r"\s*(const)?", head[end:])[1]
    line = re.sub(r"\s+", " ", name) + "(" + inside + ")" + (" " + tail if tail else "") + ";"
    line = re.sub(r"^(inline|constexpr|TESSERA_FUNCTION|\[\[nodiscard\]\]|inline constexpr) ", "", line)
    if len(line) > 100:  # broken at commas
        broken, length, depth = [""], 0, 0
        for piece in re.split(r"(?<=, )", line):
            if length + len(piece) > 100 and depth >= 1:
                broken.append("    ")
                length = 4
            broken[-1] += piece
            length += len(piece)
            depth += piece.count("(") - piece.count(")")
        line = "\n".join(one.rstrip() for one in broken)
    return (template + "\n" if template else "") + line


def name_of(text):
    head = without_template(text)
    if match := re.match(r"(?:struct|class|enum class|enum|using|concept|union)\s+(?:\[\[nodiscard\]\] )?(\w+)", head):
        return match[1]
    if is_function(text):
        return re.search(r"([\w~]+)\s*\(", head)[1]
    match = re.search(r"(operator\s*\S+?|\w+)\s*(?:\(|=|\{|;)", head)
    return match[1] if match else head.split("\n")[0]


# ---- Markdown -----------------------------------------------------------------------------------------------------------------

CODE = re.compile(r"`[^`]*`|\"[^\"\s]*\"|[A-Za-z_]\w*(?:[./][A-Za-z_]\w*)*\.hpp|"
                  r"(?:fn::|std::|detail::)?[A-Za-z_]\w*(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>)?(?:::\w+)*(?:\((?:[^()\n]|\([^()\n]*\))*\))?(?:\.\w+(?:\(\))?)*")


def prose(text):
    """Returns a sentence of a comment as Markdown: what looks like code is code, and nothing else is markup."""

    def mark(match):
        word = match[0]
        if word.startswith("`"):
            return word
        if word.startswith("\""):
            return html.escape(word, quote=False)
        if re.search(r"[<(_]|::|\.hpp$|^\w+\.\w", word) and not re.fullmatch(r"\w+\(s\)", word):
            tail = ""
            while word.endswith("."):
                word, tail = word[:-1], "." + tail
            return f"`{word}`{tail}"
        return word

    out, at = [], 0
    for match in CODE.finditer(text):
        out.append(escape(text[at:match.start()]))
        out.append(mark(match))
        at = match.end()
    out.append(escape(text[at:]))
    text = re.sub(r"^(\d+)\.", r"\1\\.", "".join(out))
    facts = r"(Communication|Collective over|Communication, collective over|Throws|Throw|Source)\b"
    first, *rest = re.split(rf"(?:^|(?<=\.) )(?={facts})", text)
    lines = [rest[i + 1] for i in range(0, len(rest), 2)]  # each after the word that it begins with
    return first + "\n".join(([""] if first else []) + ([""] if lines else []) + [re.sub(rf"^{facts}", r"- **\1**", line) for line in lines]) if lines else re.sub(
        r"^Laws:", "**Laws**:", text)


def escape(text):
    return re.sub(r"([*_\[\]|#])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def markdown(lines):
    """Returns a comment's lines as Markdown: paragraphs, and blocks that are indented as code."""
    out, block, code = [], [], False

    def end():
        if not block:
            return
        if code:
            out.append("```cpp\n" + "\n".join(line[4:] for line in block).rstrip() + "\n```")
        else:
            out.append(prose(" ".join(line.strip() for line in block)))
        block.clear()

    for line in lines:
        indented = line.startswith("    ")
        if not line.strip():
            if code:
                block.append(line)
            else:
                end()
            continue
        if indented != code:
            end()
            code = indented
        block.append(line)
    end()
    return "\n\n".join(out)


# ---- pages --------------------------------------------------------------------------------------------------------------------


def documents(root, pages):
    """Copies the documents; README.md becomes the first page."""
    moved = {"README.md": "index.md", "DESIGN.md": "inside/design.md", "CONTRIBUTING.md": "inside/contributing.md", "CHANGELOG.md": "inside/changelog.md"}
    for source, page in moved.items():
        text = (root / source).read_text()
        up = "../" * page.count("/")
        text = re.sub(r"\]\(docs/README\.md\)", f"]({up}reference.md)", text)
        text = re.sub(r"\]\(docs/", f"]({up}", text)
        text = re.sub(r"<!--.*?-->\n", "", text)
        write(pages / page, text)
    for source in sorted((root / "docs").rglob("*.md")):
        if source.name == "README.md":
            continue
        write(pages / source.relative_to(root / "docs"), re.sub(r"<!--.*?-->\n", "", source.read_text()))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def plans_of(path):
    """Returns what cmake/docs/plans.cpp has printed, as a table for each page."""
    tables = {}
    for line in path.read_text().splitlines() if path else []:
        page, call, calls, payload, messages = line.split("|")
        tables.setdefault(page, []).append(f"| `{call}` | {calls} | {payload} | {messages} |")
    return tables


def operators(root, pages, plans):
    """Writes a page for each header of the room op that users call; returns their names."""
    made = []
    unused = set(plans)
    for path in sorted((root / "include/tessera/op").rglob("*.hpp")):
        if "detail" in path.parts[-2:-1]:
            continue
        text = path.read_text()
        head = head_of(text)
        declared = [d for d in declarations_of(without_details(text)) if d.comment and not all(is_elsewhere(t) for t in d.texts)]
        functions = [d for d in declared if any(is_function(t) for t in d.texts)]
        example = [line for line in head if line.startswith("    ")]
        if not functions or not example or any("detail::" in line for line in example):
            continue
        title = path.stem.replace("_", " ")
        out = [f"# {title[0].upper() + title[1:]}", markdown(head),
               f"Header: `tessera/{path.relative_to(root / 'include/tessera')}`. Each function also takes the place of its call as its last argument, which is left out here."]
        if path.stem in plans:
            unused.remove(path.stem)
            out += ["## What it communicates", "Dry runs on data=4 x model=2. `rows` is `P<data, _>`, `columns` `P<_, data>`, `blocks` `P<data, model>` and `whole` "
                    "replicated: 4096 x 4096 floats; `line` has 4096, `ids` 512 split over data. Payload and messages are those of the process with most.",
                    "| call | communication | payload | messages |\n|---|---|---|---|\n" + "\n".join(plans[path.stem])]
        shown = set()
        for one in declared:
            names = list(dict.fromkeys(name_of(t) for t in one.texts))
            fresh = [n for n in names if n not in shown]
            if fresh:
                out.append("## " + ", ".join(f"`{n}`" for n in fresh[:6]))
                shown.update(fresh)
            out.append("```cpp\n" + "\n".join(signature(t) for t in one.texts if "private:" not in t) + "\n```")
            out.append(markdown(one.comment))
        write(pages / "operators" / f"{path.stem}.md", "\n\n".join(out) + "\n")
        sentence = re.split(r"(?<=[.;:])\s", " ".join(line for line in head[: next(i for i, l in enumerate(head) if not l.strip())]))[0]
        made.append((path.stem, title, sentence.rstrip(":;") if sentence.endswith((":", ";")) else sentence))
    if unused:
        sys.exit(f"cmake/docs/plans.cpp speaks of {unused}, which have no page")
    index = ["# Operators", "A page for each header of operators, made from the header: its example, which a test runs, its laws, and what each "
             "function returns, communicates and throws. [Capabilities](../capabilities.md) lists them by theme.", "| operators | |\n|---|---|\n" + "\n".join(
                 f"| [{title}]({stem}.md) | {prose(sentence)} |" for stem, title, sentence in made)]
    write(pages / "operators/index.md", "\n\n".join(index) + "\n")
    return [(stem, title) for stem, title, _ in made]


def compile_fail_cases(root):
    """Returns the cases of tests/compile_fail/: the message that each must give, and its code."""
    cases = []
    for path in sorted((root / "tests/compile_fail").glob("*.cpp")):
        text = path.read_text()
        for name, message in re.findall(r"^// CASE (\w+): (.*)$", text, flags=re.M):
            code = re.search(rf"^#(?:el)?if defined\(CASE_{name}\)\n(.*?)^#(?:elif|else|endif)", text, flags=re.S | re.M)
            if code:
                lines = code[1].rstrip().split("\n")
                indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
                cases.append((message, "\n".join(line[indent:] for line in lines)))
    return cases


def errors(root, pages):
    """Writes the table of rules: each sentence, and a call that a test provokes it with."""
    text = (root / "include/tessera/base/rule_table.hpp").read_text()
    text = text[text.index("#endif") :]
    cases = compile_fail_cases(root)
    kinds = {"shape": "ShapeError", "sharding": "ShardingError", "usage": "UsageError"}
    out = ["# Errors", "Every rule that a call can break, with its sentence: what is wrong, the rule, and the way out. A call whose types "
           "break a rule does not compile, and the sentence is the message. Where types cannot tell, the run time throws the exception that is named, "
           "on every process alike, with the facts in the places in braces. The code below a rule is a call that a test provokes it with; "
           "`tests/compile_fail/` has what stands around it, and the call that compiles."]
    rule = re.compile(r"^// ---- (.*?)$|^TESSERA_RULE\(\s*(\w+),\s*(\w+),\s*((?:\"(?:\\.|[^\"])*\"\s*)+),\s*((?:\"(?:\\.|[^\"])*\"\s*)+)\)", flags=re.M)
    count = 0
    for match in rule.finditer(text):
        if match[1]:
            heading = match[1].split(":")[0]
            out.append(f"## {heading[0].upper() + heading[1:]}")
            continue
        name, kind = match[2], match[3]
        if name == "ok":
            continue
        count += 1
        said = "".join(re.findall(r"\"((?:\\.|[^\"])*)\"", match[5])).replace("\\\"", "\"")
        facts = "".join(re.findall(r"\"((?:\\.|[^\"])*)\"", match[4]))
        out.append(f"### {name}")
        out.append(prose(said[0].upper() + said[1:]) + ".")
        out.append(f"`{kinds[kind]}`" + (f", with the facts `{facts}`." if facts else "."))
        provoked = [code for message, code in cases if re.search(message, said)]
        if provoked:  # by a user's words rather than the library's own
            out.append(f"```cpp\n{min(provoked, key=lambda code: 'detail::' in code)}\n```")
    if count != text.count("\nTESSERA_RULE(") - 1:
        sys.exit(f"site.py has read {count} rules of {text.count(chr(10) + 'TESSERA_RULE(') - 1}")
    write(pages / "errors.md", "\n\n".join(out) + "\n")


def tutorial(root, pages, ran):
    """Writes a page for each numbered example: its comments are the prose, its code and its output the rest."""
    made = []
    for name, (command, output) in ran.items():
        text = (root / f"examples/{name}.cpp").read_text().split("\n")
        text = [line for line in text if not line.startswith("// SPDX")]
        intro = []
        while text[0].startswith("//"):
            line = text.pop(0)
            if not re.match(r"// \w+: ", line) or line.startswith("// Lesson"):
                intro.append(line[3:])
        opening = " ".join(line for line in intro if line.strip())
        number, _, opening = opening.partition(": ")
        title = name[3:].replace("_", " ")
        out = [f"# {number.split()[1]}. {title[0].upper() + title[1:]}", prose(opening[0].upper() + opening[1:])]
        block, comment = [], []

        def end():
            code = "\n".join(block).strip("\n")
            if code:
                out.append(f"```cpp\n{code}\n```")
            block.clear()

        for line in text:
            if re.match(r"///? ", line):
                end()
                comment.append(re.sub(r"^///? ", "", line))
                continue
            if comment:
                out.append(prose(" ".join(comment)))
                comment = []
            block.append(line)
        end()
        printed = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", pathlib.Path(output).read_text(errors="replace"))
        lines = [line.split("\r")[-1].rstrip() for line in printed.strip("\n").split("\n")]
        if len(lines) > 120:
            lines = lines[:80] + ["..."] + lines[-35:]
        out += ["## What it prints", f"`{command}`", "```text\n" + "\n".join(lines) + "\n```", f"The whole source is `examples/{name}.cpp`."]
        write(pages / "tutorial" / f"{name}.md", "\n\n".join(out) + "\n")
        made.append((name, f"{number.split()[1]}. {title[0].upper() + title[1:]}"))
    return made


def configuration(root, out, tutorials, pages_of_operators):
    how_to = [("halo", "Halos of a staggered grid"), ("redistribute", "Redistribute between codes"), ("operator", "Your own operator"),
              ("train", "Train, save, resume"), ("plan", "Read a plan"), ("contract", "A contract in CI"), ("communication", "Find communication"),
              ("dynamic", "Shardings at run time"), ("phrase-book", "Phrase book")]
    known = {path.stem for path in (root / "docs/how-to").glob("*.md")}
    if known != {name for name, _ in how_to}:
        sys.exit(f"cmake/docs/site.py does not list the pages of docs/how-to as they are: {known ^ {name for name, _ in how_to}}")
    nav = ["  - Start:", "    - Tessera: index.md", "    - Install and build: install.md", "    - Programs: programs.md", "  - How to:"]
    nav += [f"    - {title}: how-to/{name}.md" for name, title in how_to]
    if tutorials:
        nav += ["  - Tutorial:"] + [f"    - \"{title}\": tutorial/{name}.md" for name, title in tutorials]
    nav += ["  - Operators:", "    - All: operators/index.md", "    - Capabilities: capabilities.md"]
    nav += [f"    - {title[0].upper() + title[1:]}: operators/{stem}.md" for stem, title in pages_of_operators]
    nav += ["  - Errors: errors.md", "  - Reference: reference.md", "  - Facts:", "    - Figures: figures.md", "    - Limits: limits.md", "    - Settings: settings.md",
            "  - Inside:", "    - Design: inside/design.md", "    - Contributing: inside/contributing.md", "    - Changelog: inside/changelog.md"]
    text = (root / "cmake/docs/mkdocs.yml").read_text()
    write(out / "mkdocs.yml", text + "docs_dir: pages\nsite_dir: site\nnav:\n" + "\n".join(nav) + "\n")


# ---- the reference ------------------------------------------------------------------------------------------------------------


def doxygen_comment(lines):
    """Returns a comment that doxygen takes as it is meant: < is no tag, members of templates no links, and @, # and \\ are no commands."""

    def plain(text):
        return re.sub(r"([@\\#<])", r"\\\1", text)

    def line_of(line):
        if line.startswith("    "):
            return line
        out, at = "", 0
        for match in CODE.finditer(line):
            word = match[0]
            out += plain(line[at : match.start()])
            out += word if word.startswith("`") else f"`{word}`" if ">::" in word else plain(word)
            at = match.end()
        return out + plain(line[at:])

    return ["/// " + line_of(line) for line in lines]


def reference(root, out):
    """Writes the headers for doxygen: a group a header, within one a room, and a comment at each declaration."""
    rooms = dict(re.findall(r"^\| (\w+) \| (.*) \|$", (root / "docs/capabilities.md").read_text().split("## What is where")[1], flags=re.M))
    groups = ["/// @namespace tessera", "/// Everything that is promised. Namespace `tessera::detail` is not, and is not listed here."]
    for room in ROOMS:
        groups += [f"/// @defgroup room_{room} {room}", f"/// {rooms[room][0].upper() + rooms[room][1:]}."]
    write(out / "headers/groups.dox", "\n".join(groups) + "\n")
    bare = []
    for room in ROOMS:
        for path in sorted((root / "include/tessera" / room).rglob("*.hpp")):
            place = path.relative_to(root / "include/tessera")
            if "detail" in place.parts or str(place) in ("base/rule_table.hpp", "show/format.hpp"):
                continue
            text = without_details(path.read_text())
            group = re.sub(r"\W", "_", str(place))
            lines = [f"/// @defgroup {group} {place}", f"/// @ingroup room_{room}"] + doxygen_comment(head_of(text)) + ["", "namespace tessera {",
                     f"/// @addtogroup {group}", "/// @{"]
            for one in declarations_of(text):
                one.texts = [t for t in one.texts if not is_elsewhere(t)]
                if not one.comment and one.texts and all(is_function(t) for t in one.texts):
                    bare.append(f"{path}: {name_of(one.texts[0])} has no comment")
                for declared in one.texts:
                    declared = re.sub(r"^#.*\n", "", declared, flags=re.M)
                    if re.match(r"(template <>|extern |static_assert|namespace |friend )", declared) or "TESSERA_INVALID" in declared:
                        continue
                    lines += [""] + doxygen_comment(one.comment) + [re.sub(r"///< (.*)", lambda m: "///< " + re.sub(r"([<@\\#])", r"\\\1", m[1]), declared)]
            lines += ["/// @}", "}"]
            write(out / "headers/tessera" / place, "\n".join(lines) + "\n")
    for line in bare:
        print(line)
    return not bare


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
    write(pages / "reference.md", "# Reference\n\nEvery public type and function, by room and header, made by doxygen: "
          "<a href=\"api/modules.html\">the reference</a>.\n\nA header opens with an example, which a test runs, and its laws. "
          "`tessera::detail` is not listed: it may change.\n")
    ran = {name: (command, output) for name, command, output in (one.split("=", 2) for one in arguments.ran)}
    made = operators(root, pages, plans_of(arguments.plans))
    errors(root, pages)
    configuration(root, out, tutorial(root, pages, ran), made)
    if not reference(root, out):
        sys.exit("A public function has no comment; say what it returns, communicates and throws.")


main()
