# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the translations that programs ship: catalogues of gettext (.mo), and trees of JSON, in wheels and packages of Debian.

    for found in catalogues("django-6.1.3-py3-none-any.whl"):            # Catalogue("de", [("Log in", "Anmelden"), ...])
        print(found.language, len(found.pairs))

Of a message with plural forms, the pair for one is read and the pair for several, by the catalogue's own rule. Unfinished
translations are in no .mo. Python's standard library is all that is needed.
"""
import gettext
import json
import os
import re
import struct
import sys
import zipfile
from typing import NamedTuple

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")]
import debian_archive  # noqa: E402


class CatalogueFault(Exception):
    """What is wrong with a file, as a sentence."""


class Catalogue(NamedTuple):
    language: str  # as `language_of` writes it
    pairs: list  # (English, translation)


# A language is told apart by its code and, where it is written in two scripts, the script; a country tells a variant of it.
SAME = {"no": "nb", "in": "id", "iw": "he", "zh-cn": "zh-hans", "zh-sg": "zh-hans", "zh-tw": "zh-hant", "zh-hk": "zh-hant",
        "sr-cyrl": "sr"}
SCRIPTS = {"hans", "hant", "latn", "cyrl", "latin"}


def language_of(code):
    """Returns a language as lower-case words: zh_Hans_CN and zh-CN are zh-hans, sr@latin is sr-latn, pt_BR is pt."""
    words = [word for word in re.split(r"[-_@.]", code.lower()) if word]
    script = [{"latin": "latn"}.get(word, word) for word in words[1:] if word in SCRIPTS]
    if words[:1] == ["zh"] and not script:
        script = words[1:2]
    name = "-".join(words[:1] + script[:1])
    return SAME.get(name, name)


def rule_of_plurals(header):
    """Returns the function from a count to the number of a form that a catalogue's header states."""
    found = re.search(r"^Plural-Forms:.*?plural\s*=\s*([^;\n]+)", header, re.MULTILINE | re.IGNORECASE)
    try:
        return gettext.c2py(found.group(1).strip()) if found else lambda n: int(n != 1)
    except ValueError:
        return lambda n: int(n != 1)


def pairs_of_mo(data):
    """Returns the pairs of English and translation of a .mo file, given as bytes. Raises CatalogueFault."""
    magic = data[:4]
    order = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}.get(magic)
    if order is None:
        raise CatalogueFault(f"it begins with {magic.hex()}, and a .mo file with de120495 or 950412de")
    try:
        count, originals, translations = struct.unpack_from(order + "III", data, 8)
        parts = []
        for i in range(count):
            for table in (originals, translations):
                size, at = struct.unpack_from(order + "II", data, table + 8 * i)
                if at + size > len(data):
                    raise CatalogueFault(f"its text {i} ends at byte {at + size}, and it has {len(data)}")
                parts.append(data[at:at + size])
        stated = re.search(rb"charset=([\w.:-]+)", parts[1]) if parts[:1] == [b""] else None  # an empty message has the header
        charset = stated.group(1).decode() if stated else "utf-8"
        texts = [(here.decode(charset), there.decode(charset)) for here, there in zip(parts[::2], parts[1::2])]
    except struct.error as fault:
        raise CatalogueFault(f"it is cut off: {fault}") from fault
    except (UnicodeDecodeError, LookupError) as fault:
        raise CatalogueFault(f"a text of it is not in the characters that it states: {fault}") from fault
    plural = rule_of_plurals(next((there for here, there in texts if not here), ""))
    pairs = []
    for here, there in texts:
        english, forms = here.split("\x04")[-1].split("\0"), there.split("\0")
        if here and len(english) == 1:
            pairs.append((english[0], forms[0]))
        elif here:
            one, several = plural(1), plural(5)
            if one != several and one < len(forms):
                pairs.append((english[0], forms[one]))
            if several < len(forms):
                pairs.append((english[1], forms[several]))
    return pairs


def leaves(tree, way=()):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, (*way, key))
        elif isinstance(value, str):
            yield (*way, key), value


def pairs_of_trees(english, translation):
    """Returns the pairs of two trees of JSON whose texts have the same keys."""
    there = dict(leaves(translation))
    return [(text, there[way]) for way, text in leaves(english) if there.get(way)]


def members_of_wheel(path):
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith((".mo", ".json")):
                yield name, archive.read(name)


MO = re.compile(r"(?:^|/)([^/]+)/LC_MESSAGES/[^/]+\.mo$")
JSON = re.compile(r"^(.*/)translations/([^/.]+)\.json$")


def catalogues(path):
    """Yields the catalogues of a wheel or a Debian package, but those of English."""
    english, others = {}, []
    for name, data in (debian_archive.members if path.endswith(".deb") else members_of_wheel)(path):
        if found := MO.search(name):
            if (language := language_of(found.group(1))) != "en":
                try:
                    yield Catalogue(language, pairs_of_mo(data))
                except CatalogueFault as fault:
                    raise CatalogueFault(f"{name}: {fault}") from fault
        elif found := JSON.match(name):
            folder, code = found.groups()
            if code == "en":
                english[folder] = json.loads(data)
            elif language_of(code) != "en":
                others.append((folder, language_of(code), data))
    for folder, language, data in others:
        if folder in english:
            yield Catalogue(language, pairs_of_trees(english[folder], json.loads(data)))
