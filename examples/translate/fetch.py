# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gets parallel text: what programs say, in English and as their translators have it in tens of other languages.

    python3 examples/translate/fetch.py                     # 7 wheels, 173 MiB; prints the folder, and a table of languages
    python3 examples/translate/fetch.py --sources all       # and 4 packages of Debian 12, 165 MiB: half as much text again

The folder is tessera/translate in $XDG_CACHE_HOME (~/.cache where that is not set), or the one that is given. It keeps the archives,
whose versions and SHA-256 are pinned here, and gets

    text/de.learn.tsv, text/de.held_out.tsv    a line for each sentence: the English one, a tab, the translation
    SOURCES.txt                                the archives, and the licence of each one's texts

An archive that is there already is not downloaded again. Without a network, put the archives into the folder by hand. Python's
standard library is all that is needed.
"""
import argparse
import os
import shutil
import sys
import zipfile
from typing import NamedTuple

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")]
from catalogues import CatalogueFault, catalogues  # noqa: E402
from download import DebianPackage, Refused, Wheel, bar, downloaded, say  # noqa: E402
from sentences import Pairs  # noqa: E402


class Source(NamedTuple):
    archive: object
    accelerator: str = None  # the sign before the letter that chooses an entry of a menu
    context: str = None  # the sign after which an English message begins, where translators are told about it before


WHEELS = [
    Source(Wheel("homeassistant", "2026.11.0", "7ca5fbde9dea879ac7723949fc84347aac5182e6309c357b2e4973fd391b00f7", 67607712,
                 "Apache-2.0")),
    Source(Wheel("pretix", "2026.8.0", "a78932e698778d873530d67f25a57c28d1c09b1bfb1a22ec817c00d90397db85", 39528456,
                 "Apache-2.0 (its locale/)")),
    Source(Wheel("indico", "3.2.9", "194d2e31ccaabd2b9af7809e67d60d942faee35a6b4de36f0c2c280a32ed84c3", 30004029, "MIT")),
    Source(Wheel("gramps", "6.0.8", "56f03bcb643320eb9f9892d4c3f8bbe7c4c4d2e4c71e56f598584af24561ec1c", 17077316,
                 "GPL-2.0-or-later"), accelerator="_"),
    Source(Wheel("weblate", "2026.10.1", "27a779ceb05fec3665081df0d3f46f4b6ac0e3f499160a1c3cb145e8e35853d2", 10949589,
                 "GPL-3.0-or-later")),
    Source(Wheel("django", "6.1.3", "a0530e3fdac55d34ccc5893c36f6c57d7a7083064f3d414537e51473648b3290", 8424610, "BSD-3-Clause")),
    Source(Wheel("ckan", "2.12.0", "3b41cb4860286813fbcd18c57341e96edba266e2e492aeea92c4e03ce9e2934e", 7785966,
                 "AGPL-3.0-or-later")),
]
DEBIAN = [
    Source(DebianPackage("wesnoth-1.16-data", "1:1.16.9-1", "1012b964bd412a6770685e3324ae3b61e176caff7846192d1ee63d55cd621e26",
                         146229044, "GPL-2.0-or-later"), context="^"),
    Source(DebianPackage("freeciv-data", "3.0.6-1+deb12u1", "278bed022b87408ca9923aa727bef3d6c97875c811723e93ff95dded1b9b76b2",
                         20085120, "GPL-2.0-or-later"), accelerator="&"),
    Source(DebianPackage("gnucash-common", "1:4.13-1", "8477b415856eb671125ee63ac6a4ee1d23efeca3de6e55e5a14c6ebb32642b31", 5194912,
                         "GPL-2.0-only OR GPL-3.0-only"), accelerator="_"),
    Source(DebianPackage("aptitude-common", "0.8.13-5", "3310ec70a514fbebd7082059d5cebf97e82485abfcb13c9ad21858e09abadc36", 1777280,
                         "GPL-2.0-or-later")),
]
SOURCES = {"wheels": WHEELS, "all": WHEELS + DEBIAN}


def default_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "tessera", "translate")


def read_source(source, path, pairs):
    """Adds a source's sentences. Raises Refused where its archive has none."""
    before = len(pairs.found)
    try:
        for found in catalogues(path):
            for english, translation in found.pairs:
                if source.context:
                    english = english.rpartition(source.context)[2]
                pairs.add(found.language, english, translation, source.accelerator)
    except (CatalogueFault, ValueError, zipfile.BadZipFile) as fault:
        raise Refused(f"{path} is not read: {fault}") from fault
    if not before and not pairs.found:
        raise Refused(f"{path} has no translations: neither LANGUAGE/LC_MESSAGES/*.mo nor translations/LANGUAGE.json")


def write_text(folder, pairs):
    """Replaces the folder's texts as a whole, and returns rows of a table: language, sentences, characters, held out."""
    rows, part = [], os.path.join(folder, ".text-part")
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    for language in sorted(pairs.found):
        learned, held_out = pairs.divided(language)
        for name, some in (("learn", learned), ("held_out", held_out)):
            with open(os.path.join(part, f"{language}.{name}.tsv"), "w", encoding="utf-8") as file:
                file.writelines(f"{english}\t{translation}\n" for english, translation in some)
        rows.append((language, len(learned), sum(len(there) for _, there in learned), len(held_out)))
    whole = os.path.join(folder, "text")
    shutil.rmtree(whole, ignore_errors=True)
    os.replace(part, whole)
    return sorted(rows, key=lambda row: (-row[2], row[0]))


def write_sources(folder, sources):
    with open(os.path.join(folder, "SOURCES.txt"), "w", encoding="utf-8") as file:
        file.write("The texts of text/ are derived from messages and translations of these, each under the licence of its program:\n")
        for source in sources:
            one = source.archive
            file.write(f"{one.file}  {one.package} {one.version}  {one.licence}  SHA-256 {one.sha256}\n")


def fetched(folder, sources):
    """Makes the folder's texts of the sources, and returns rows of a table: language, sentences, characters, held out."""
    os.makedirs(folder, exist_ok=True)
    paths = [downloaded(source.archive, folder) for source in sources]
    pairs = Pairs()
    for i, (source, path) in enumerate(zip(sources, paths)):
        if sys.stderr.isatty():
            bar(i / len(sources), f"reading {source.archive.package:20}")
        read_source(source, path, pairs)
    if sys.stderr.isatty():
        bar(1, f"{'read':28}\n")
    for why, count in pairs.refused.most_common():
        say(f"left out: {count} messages, as of a message or its translation {why}")
    write_sources(folder, sources)
    return write_text(folder, pairs)


def main():
    parser = argparse.ArgumentParser(description="Gets parallel text of translated programs, and prints where it is.")
    parser.add_argument("folder", nargs="?", default=default_folder(), help="where archives and texts are kept")
    parser.add_argument("--sources", choices=SOURCES, default="wheels", help="wheels alone, or packages of Debian 12 too")
    given = parser.parse_args()
    try:
        rows = fetched(os.path.abspath(given.folder), SOURCES[given.sources])
    except (Refused, OSError) as fault:
        sys.exit(f"fetch.py: {fault}")
    print(f"{'language':10} {'sentences':>9} {'characters':>10} {'held out':>8}")
    for language, sentences, characters, held_out in rows:
        print(f"{language:10} {sentences:9} {characters:10} {held_out:8}")
    print(os.path.abspath(given.folder))


if __name__ == "__main__":
    main()
