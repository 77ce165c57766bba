# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comments of headers as Markdown, and as comments that doxygen takes as they are meant."""
import html
import re

# What looks like code in a sentence: quoted words, headers, names with arguments of templates and calls.
CODE = re.compile(r"`[^`]*`|\"[^\"\s]*\"|[A-Za-z_]\w*(?:[./][A-Za-z_]\w*)*\.hpp|"
                  r"(?:fn::|std::|detail::)?[A-Za-z_]\w*(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>)?(?:::\w+)*"
                  r"(?:\((?:[^()\n]|\([^()\n]*\))*\))?(?:\.\w+(?:\(\))?)*")
FACTS = r"(Communication, collective over|Communication|Collective over|Throws|Throw|Source)\b"


def replaced(text, word, between):
    """Returns a text whose code is replaced by word(code), and all else by between(text)."""
    out, at = [], 0
    for match in CODE.finditer(text):
        out += [between(text[at : match.start()]), word(match[0])]
        at = match.end()
    return "".join(out) + between(text[at:])


def escape(text):
    """Returns plain text of which Markdown makes no markup."""
    return re.sub(r"([*_\[\]|#])", r"\\\1", html.escape(text, quote=False))


def mark(word):
    """Returns a word as code, if it is more than a word."""
    if word.startswith("`"):
        return word
    if word.startswith("\""):
        return html.escape(word, quote=False)
    if re.search(r"[<(_]|::|\.hpp$|^\w+\.[a-z_]", word) and not re.fullmatch(r"\w+\(s\)", word):
        code = word.rstrip(".")
        return f"`{code}`{word[len(code):]}"
    return word


def prose(text):
    """Returns sentences of a comment as Markdown: what looks like code is code, and what a call communicates and throws a list."""
    text = re.sub(r"^(\d+)\.", r"\1\\.", replaced(text, mark, escape))
    parts = re.split(rf"(?:^|(?<=\.) )(?={FACTS})", text)
    facts = [re.sub(f"^{FACTS}", r"- **\1**", fact) for fact in parts[2::2]]  # each after the word that it begins with
    first = re.sub(r"^Laws:", "**Laws**:", parts[0])
    return "\n\n".join(part for part in (first, "\n".join(facts)) if part)


def markdown(lines):
    """Returns a comment's lines as Markdown: paragraphs, and blocks that are indented as code."""
    out, block, code = [], [], False

    def end():
        if block and code:
            out.append("```cpp\n" + "\n".join(line[4:] for line in block).rstrip() + "\n```")
        elif block:
            out.append(prose(" ".join(line.strip() for line in block)))
        block.clear()

    for line in lines:
        if not line.strip():
            if code:
                block.append(line)
            else:
                end()
            continue
        if line.startswith("    ") != code:
            end()
            code = not code
        block.append(line)
    end()
    return "\n\n".join(out)


def doxygen_comment(lines):
    """Returns a comment in which < is no tag, members of templates and a word are no links, and @, # and \\ begin no commands."""

    def plain(text):
        return re.sub(r"([@\\#<])", r"\\\1", re.sub(r"\bWhere\b", "%Where", text))  # a word that begins sentences, and a type's name

    def word(code):
        return code if code.startswith("`") else f"`{code}`" if ">::" in code else plain(code)

    return ["/// " + (line if line.startswith("    ") else replaced(line, word, plain)) for line in lines]


def doxygen_declaration(text):
    """Returns a declaration whose comments at the ends of lines are such comments, without `detail::`."""
    text = re.sub(r"\bdetail::", "", re.sub(r"^#.*\n", "", text, flags=re.M))
    return re.sub(r"///< (.*)", lambda match: "///< " + re.sub(r"([<@\\#])", r"\\\1", match[1]), text)


def sentence_case(text):
    return text[0].upper() + text[1:]
