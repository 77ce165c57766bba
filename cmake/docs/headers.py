# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads headers: the comment that one opens with, and what it declares in namespace tessera, by the house's own layout."""
import re


class Declarations:
    """A comment and the declarations that it is for: those up to the next blank line."""

    def __init__(self, comment):
        self.comment = comment
        self.texts = []


def without_details(text):
    """Returns a header's text without its namespaces detail, and with `auto` for results whose types are theirs."""
    text = re.sub(r"^namespace detail \{$.*?^\}  // namespace detail$\n?", "", text, flags=re.S | re.M)
    arguments = r"(?:<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>)?"
    result = rf"^((?:inline |constexpr )*)(?:typename )?detail::\w+{arguments}(?:::\w+)?\s+(?=\w+\()"
    return re.sub(result, r"\1auto ", text, flags=re.M)


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
    """Returns whether a declaration is a function's, other than an operator's."""
    head = without_template(text)
    other = r"(struct|class|enum|using|concept|namespace|friend|static_assert|extern|union)\b|[^({;]*="
    return "(" in head and not re.match(other, head) and "operator" not in head.split("(")[0]


def is_elsewhere(text):
    """Returns whether something is a definition of what another place declares, or a guide for deduction."""
    head = without_template(text)
    guide = re.match(r"\w+\([^)]*\)\s*->", head)
    body = head.startswith("TESSERA_FUNCTION") and "{" in head
    return not head or bool(guide) or body or "::" in head.split("(")[0].split()[-1]


def interface(text):
    """Returns the definition of a type without the bodies of its functions and without what is private."""
    text = re.sub(r"^ private:\n.*?(?=^ public:|^\};|^\}$)", "", text, flags=re.S | re.M)
    out, depth, at = "", 0, 0
    while at < len(text):
        if text[at] == "{":
            head = re.sub(r"(\))\s*:\s(?:(?!//)[^;{}])*$", r"\1", out)  # a constructor's, without its initializers
            if depth >= 1 and re.search(r"\)\s*(const|noexcept|override|\s)*$", head):
                inner = 0
                while True:
                    inner += {"{": 1, "}": -1}.get(text[at], 0)
                    at += 1
                    if inner == 0:
                        break
                out = head.rstrip() + ";"
                continue
            depth += 1
        elif text[at] == "}":
            depth -= 1
        out += text[at]
        at += 1
    return re.sub(r"\n+(?=\};?$)", "\n", out)


def is_place(text):
    """Returns whether a declaration is an operator's once more, which takes the place of its call from an operand."""
    return "detail::Placed" in text


def signature(text):
    """Returns a declaration without its body, without the place of the call, which every function takes, and without `detail::`."""
    return re.sub(r"\bdetail::", "", whole_signature(text))


def whole_signature(text):
    if re.match(r"(struct|class)\b", without_template(text)):
        return interface(text)
    if not is_function(text) and re.search(r"\boperator\b[^(]*\(", text):
        return re.sub(r"(?<=\))( const)? \{.*", r"\1;", text, flags=re.S)
    if not is_function(text):
        return text
    head = without_template(text)
    template = text[: len(text) - len(head)].rstrip()
    template = re.sub(r"\s+", " ", template).replace("> requires", ">\n  requires")
    parameters = head.index("(")
    end = end_of_bracket(head, parameters)
    name, inside = head[:parameters], re.sub(r"\s+", " ", head[parameters + 1 : end - 1])
    inside = re.sub(r"(?:, |^)(?:Where where|const CallOptions& call) = (?:Where::here\(\)|\{\})", "", inside)
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
    """Returns the name that a declaration declares."""
    head = without_template(text)
    if match := re.match(r"(?:struct|class|enum class|enum|using|concept|union)\s+(?:\[\[nodiscard\]\] )?(\w+)", head):
        return match[1]
    if is_function(text):
        return re.search(r"([\w~]+)\s*\(", head)[1]
    match = re.search(r"(operator\s*\S+?|\w+)\s*(?:\(|=|\{|;)", head)
    return match[1] if match else head.split("\n")[0]
