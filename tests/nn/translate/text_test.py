# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of examples/translate/: catalogues are read, sentences cleaned and divided, numbers read back as text, chrF. No network.

    python3 tests/nn/translate/text_test.py

With SentencePiece or sacrebleu installed, they are used too.
"""
import array
import contextlib
import hashlib
import io
import os
import struct
import sys
import tarfile
import tempfile
import types
import unittest
import unittest.mock
import xml.etree.ElementTree
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "examples", folder) for folder in ("translate", "support")]
import catalogues  # noqa: E402
import download  # noqa: E402
import fetch  # noqa: E402
import prepare  # noqa: E402
import score  # noqa: E402
import sentences  # noqa: E402
import torch_file  # noqa: E402

RUSSIAN = "Plural-Forms: nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);\n"


def mo_of(texts, order="<"):
    """Returns a .mo file of {original: translation}."""
    pairs = sorted((here.encode(), there.encode()) for here, there in texts.items())
    tables = [28, 28 + 8 * len(pairs)]
    at, head, data = 28 + 16 * len(pairs), [], b""
    for side in (0, 1):
        for pair in pairs:
            head.append(struct.pack(order + "II", len(pair[side]), at + len(data)))
            data += pair[side] + b"\0"
    return struct.pack(order + "IIIIIII", 0x950412DE, 0, len(pairs), *tables, 0, 0) + b"".join(head) + data


def wheel_of(files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return file.getvalue()


def deb_of(files):
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:xz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo("./" + name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": inner.getvalue()}
    return b"!<arch>\n" + b"".join(f"{name:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
                                   for name, data in parts.items())


class Catalogues(unittest.TestCase):
    def test_messages_contexts_and_plurals(self):
        texts = {"": "Content-Type: text/plain; charset=UTF-8\n" + RUSSIAN, "Open": "Открыть", "menu\x04Close": "Закрыть",
                 "one file\0{n} files": "{n} файл\0{n} файла\0{n} файлов"}
        expected = [("Close", "Закрыть"), ("Open", "Открыть"), ("one file", "{n} файл"), ("{n} files", "{n} файлов")]
        for order in "<>":
            self.assertEqual(sorted(catalogues.pairs_of_mo(mo_of(texts, order))), expected)
        latin = mo_of({"": "Content-Type: text/plain; charset=ISO-8859-2\n", "Open": "?yitva"}).replace(b"?", b"\xd5")
        self.assertEqual(catalogues.pairs_of_mo(latin), [("Open", "Őyitva")])
        # Where a language has one form it stands for several, since the English of one may lack the count.
        texts = {"": "Plural-Forms: nplurals=1; plural=0;\n", "one file\0%d files": "%d 個"}
        self.assertEqual(catalogues.pairs_of_mo(mo_of(texts)), [("%d files", "%d 個")])

    def test_what_is_damaged_is_refused(self):
        whole = mo_of({"Open": "Öffnen", "Close": "Schließen"})
        for data, words in ((b"", "begins with "), (b"PK\x03\x04", "begins with 504b0304"), (whole[:20], "cut off"),
                            (whole[:-4], "text 1 ends at byte .*, and it has"), (whole.replace(b"\xc3", b"\xff"), "not in the characters that it states: 'utf-8'"),
                            (mo_of({"": "charset=odd"}), "unknown encoding: odd")):
            with self.assertRaisesRegex(catalogues.CatalogueFault, words):
                catalogues.pairs_of_mo(data)

    def test_languages(self):
        for code, language in (("de", "de"), ("de_AT", "de"), ("pt-BR", "pt"), ("zh_Hans_CN", "zh-hans"), ("zh_TW", "zh-hant"),
                               ("zh", "zh"), ("sr@latin", "sr-latn"), ("sr-Latn", "sr-latn"), ("sr_Cyrl", "sr"), ("nb_NO", "nb"),
                               ("no", "nb"), ("es-419", "es"), ("ca@valencia", "ca"), ("de_Informal", "de"), ("en_GB", "en")):
            self.assertEqual(catalogues.language_of(code), language, code)

    def test_wheels_and_packages_of_debian(self):
        mo = mo_of({"Open": "Öffnen"})
        with tempfile.TemporaryDirectory() as folder:
            files = {"x/locale/de_DE/LC_MESSAGES/django.mo": mo, "x/locale/en_GB/LC_MESSAGES/django.mo": mo,
                     "x/a/translations/en.json": b'{"title": "Lamp", "state": {"on": "On", "off": "Off"}, "many": ["no", "text"]}',
                     "x/a/translations/fr.json": b'{"title": "Lampe", "state": {"off": "\xc3\x89teint", "gone": "Disparu"}}',
                     "x/b/translations/fr.json": b'{"title": "Of no English"}'}
            path = os.path.join(folder, "x.whl")
            with open(path, "wb") as file:
                file.write(wheel_of(files))
            expected = [("de", [("Open", "Öffnen")]), ("fr", [("Lamp", "Lampe"), ("Off", "Éteint")])]
            self.assertEqual([tuple(one) for one in catalogues.catalogues(path)], expected)
            path = os.path.join(folder, "x.deb")
            with open(path, "wb") as file:
                file.write(deb_of({"usr/share/locale/de/LC_MESSAGES/x.mo": mo, "usr/share/odd": b"odd"}))
            self.assertEqual([tuple(one) for one in catalogues.catalogues(path)], expected[:1])


class Sentences(unittest.TestCase):
    def test_cleaning(self):
        for english, translation, made in (
                ("Remove <b>{name}</b>?", "<b>{name}</b> entfernen?", ("Remove ⟨1⟩?", "⟨1⟩ entfernen?")),
                ("Copy %s to %s", "Nach %2$s wird %1$s kopiert", ("Copy ⟨1⟩ to ⟨2⟩", "Nach ⟨2⟩ wird ⟨1⟩ kopiert")),
                ("%(count)d of {total:>4}, %-5.2f", "{total:>4} ist %(count)d, %-5.2f", ("⟨1⟩ of ⟨2⟩, ⟨3⟩", "⟨2⟩ ist ⟨1⟩, ⟨3⟩")),
                ("{} is not {}", "{1} gilt {0} nicht", ("⟨1⟩ is not ⟨2⟩", "⟨2⟩ gilt ⟨1⟩ nicht")),
                ("100%% of it, 50 % more", "100%% davon, 50 % mehr", ("100% of it, 50 % more", "100% davon, 50 % mehr")),
                ("$unit.name| attacks", "Es greift $unit.name an", ("⟨1⟩ attacks", "Es greift ⟨1⟩ an")),
                ("See [the\n page]({url}) &amp; <a href=\"x\">go</a>", "Siehe [die Seite]({url}) &amp; <a href=\"x\">los</a>",
                 ("See the page & go", "Siehe die Seite & los")),
                ("**Note**: use <file>", "**Hinweis**: <Datei> verwenden", ("Note: use <file>", "Hinweis: <Datei> verwenden")),
                ("One.<br>Two.", "Eins.<br/>Zwei.", ("One. Two.", "Eins. Zwei.")),
                ("Cafe\u0301 is\u200b open", "Das Cafe\u0301  ist\toffen", ("Café is open", "Das Café ist offen"))):
            self.assertEqual(sentences.cleaned(english, translation), made)
        self.assertEqual(sentences.cleaned("_Save __all__", "Alle _sichern", "_"), ("Save _all_", "Alle sichern"))
        self.assertEqual(sentences.cleaned("&File && more", "ファイル(&F)", "&"), ("File & more", "ファイル"))
        self.assertEqual(sentences.cleaned("a file_name", "ein file_name wird"), ("a file_name", "ein file_name wird"))

    def test_what_is_no_sentence(self):
        for english, translation, why in (
                ("Hello {name}", "Hallo {nom}", "placeholders"), ("Hello {name}", "Hallo", "placeholders"),
                ("Hello", "Hallo {name}", "placeholders"), ("%s" * 10 + " words", "%s" * 10 + " Wörter", "many placeholders"),
                ("{n, plural, one {x} other {y}}", "{n, plural, one {x} other {y}}", "template"), ("long " * 90, "lang", "long"),
                ("12:30 (x)", "12.30 Uhr", "few letters"), ("Good", "***", "few letters"), ("Wi-Fi 5", "WIFI", "not translated")):
            self.assertIn(why, sentences.cleaned(english, translation))

    def test_paragraphs(self):
        pairs = sentences.Pairs()
        pairs.add("de", "One word.\n\nTwo words.", "Ein Wort.\n \nZwei Wörter.")
        pairs.add("de", "Three.\n\nFour.", "Drei und vier.")
        made = sum(pairs.divided("de"), [])
        self.assertEqual(sorted(made), [("One word.", "Ein Wort."), ("Three. Four.", "Drei und vier."), ("Two words.", "Zwei Wörter.")])

    def test_each_sentence_once_and_held_out_for_all_or_none(self):
        pairs = sentences.Pairs()
        for language in ("de", "fr", "hu"):
            for i in range(2000 if language == "de" else 300):
                word = "".join("abcdefghij"[int(c)] for c in str(i))
                pairs.add(language, f"The word {word}", f"{language} {word}")
                pairs.add(language, f"the WORD  {word} 2!", f"{language} again {word}")  # the same letters
        divided = {language: pairs.divided(language) for language in ("de", "fr", "hu")}
        keys = {(language, part): [sentences.key_of(english) for english, _ in divided[language][part]]
                for language in divided for part in (0, 1)}
        for language, count in (("de", 2000), ("fr", 300), ("hu", 300)):
            self.assertEqual(len(keys[language, 0]) + len(keys[language, 1]), count)
            self.assertEqual(len(set(keys[language, 0] + keys[language, 1])), count)
        learned = {key for (_, part), some in keys.items() if part == 0 for key in some}
        held_out = {key for (_, part), some in keys.items() if part == 1 for key in some}
        self.assertFalse(learned & held_out)
        self.assertTrue(40 < len(held_out) < 130, len(held_out))  # 4 percent of 2000
        self.assertEqual(keys["fr", 1], keys["hu", 1])

    def test_the_translation_found_most_is_taken(self):
        for texts in (["Ablage", "Regal", "Regal"], ["Regal", "Ablage", "Regal"], ["Zimmer", "Regal"], ["Regal", "Zimmer"]):
            pairs = sentences.Pairs()
            for text in texts:
                pairs.add("de", "Shelf", text)
            self.assertEqual(sum(pairs.divided("de"), []), [("Shelf", "Regal")])


class Fetch(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(contextlib.redirect_stderr(io.StringIO()))
        words = [a + b for a in "bcdfg" for b in ("anana", "irne", "ohne")]
        self.wheel = wheel_of({"x/locale/de/LC_MESSAGES/x.mo": mo_of({f"The {word}": f"Die {word}" for word in words}),
                               "x/locale/fr/LC_MESSAGES/x.mo": mo_of({f"The {word}": f"La {word}" for word in words[:5]})})
        self.deb = deb_of({"usr/share/locale/de/LC_MESSAGES/x.mo": mo_of({"female^_Archer": "_Schützin"})})
        self.archives = [self.pinned(download.Wheel, "small", "1.0", self.wheel, "MIT"),
                         self.pinned(download.DebianPackage, "small-l10n", "2:1.0-1", self.deb, "GPL-2.0-only")]
        self.sources = [fetch.Source(self.archives[0]), fetch.Source(self.archives[1], accelerator="_", context="^")]

    def pinned(self, kind, package, version, data, licence):
        return kind(package, version, hashlib.sha256(data).hexdigest(), len(data), licence)

    def put(self, archive, data):
        with open(os.path.join(self.folder, archive.file), "wb") as file:
            file.write(data)

    def put_both(self):
        self.put(self.archives[0], self.wheel)
        self.put(self.archives[1], self.deb)

    def test_texts_of_archives_by_hand(self):
        self.put_both()
        rows = fetch.fetched(self.folder, self.sources)
        self.assertEqual([(language, learned + held_out) for language, learned, _, held_out in rows], [("de", 16), ("fr", 5)])
        pairs = [pair for name in ("learn", "held_out") for pair in prepare.read_text(self.folder, "de", name)]
        self.assertEqual(len(pairs), 16)
        self.assertIn(("Archer", "Schützin"), pairs)
        with open(os.path.join(self.folder, "SOURCES.txt"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?s)small 1\.0  MIT .*small-l10n_2%3a1\.0-1_all\.deb  small-l10n 2:1\.0-1  GPL-2\.0-only")
        before = self.read_all()
        fetch.fetched(self.folder, self.sources)
        self.assertEqual(self.read_all(), before)
        with self.assertRaisesRegex(download.Refused, "hu.learn.tsv is not there; there are texts in de fr"):
            prepare.read_text(self.folder, "hu", "learn")

    def read_all(self):
        made = {}
        for name in sorted(os.listdir(os.path.join(self.folder, "text"))):
            with open(os.path.join(self.folder, "text", name), "rb") as file:
                made[name] = file.read()
        return made

    def test_what_is_refused(self):
        self.put(self.archives[0], self.wheel + b" ")
        with self.assertRaisesRegex(download.Refused, "pinned as " + hashlib.sha256(self.wheel).hexdigest()):
            fetch.fetched(self.folder, self.sources)
        empty = wheel_of({"x/odd.json": b"{}"})
        source = fetch.Source(self.pinned(download.Wheel, "empty", "1.0", empty, "MIT"))
        self.put(source.archive, empty)
        with self.assertRaisesRegex(download.Refused, "has no translations: neither LANGUAGE/LC_MESSAGES"):
            fetch.fetched(self.folder, [source])
        with self.assertRaisesRegex(download.Refused, "run fetch.py .* first"):
            prepare.read_text(self.folder, "de", "learn")

    def test_without_a_network_it_says_what_to_do(self):
        with unittest.mock.patch.dict(os.environ, {"PIP_NO_INDEX": "1", "PATH": self.folder}):
            with self.assertRaisesRegex(download.Refused, r"(?s)small-1.0-py3-none-any.whl is not in .*pip download --no-deps .*small==1.0"):
                fetch.fetched(self.folder, self.sources)
            self.put(self.archives[0], self.wheel)
            with self.assertRaisesRegex(download.Refused, r"(?s)_all.deb is not in .*apt-get download small-l10n=2:1.0-1\nand copy"):
                fetch.fetched(self.folder, self.sources)
        self.assertEqual(os.listdir(self.folder), [self.archives[0].file])

    def test_the_folder(self):
        with unittest.mock.patch.dict(os.environ, {"XDG_CACHE_HOME": "/c"}):
            self.assertEqual(fetch.default_folder(), "/c/tessera/translate")
        with unittest.mock.patch.dict(os.environ, {"XDG_CACHE_HOME": "", "HOME": "/h"}):
            self.assertEqual(fetch.default_folder(), "/h/.cache/tessera/translate")


class LettersAlone:
    """In place of SentencePiece: a subword is a letter that the texts have, or a byte."""

    @staticmethod
    def train(sentence_iterator, model_prefix, vocab_size, user_defined_symbols, **_):
        letters = sorted({c for text in sentence_iterator for c in text.replace(" ", "▁")} - set("⟨⟩"))
        pieces = ["<pad>", "<unk>", "<s>", "</s>", *user_defined_symbols, *(f"<0x{i:02X}>" for i in range(256)), "▁", *letters]
        for end in (".model", ".vocab"):
            with open(model_prefix + end, "w", encoding="utf-8") as file:
                file.write("\n".join(pieces[:vocab_size]))

    def __init__(self, model_file):
        with open(model_file, encoding="utf-8") as file:
            self.pieces = file.read().split("\n")

    def get_piece_size(self):
        return len(self.pieces)

    def id_to_piece(self, i):
        return self.pieces[i]

    def encode(self, texts):
        made = []
        for text in texts:
            ids, text = [], "▁" + text.replace(" ", "▁")
            while text:
                piece = next((p for p in self.pieces[4:13] + self.pieces[269:] if text.startswith(p)), None)
                ids += [self.pieces.index(piece)] if piece else [13 + byte for byte in text[0].encode()]
                text = text[len(piece or text[0]):]
            made.append(ids)
        return made


class Numbers(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(contextlib.redirect_stderr(io.StringIO()))
        os.makedirs(os.path.join(self.folder, "text"))
        self.pairs = {"de": [(f"Remove ⟨1⟩ from list {i}, é", f"⟨1⟩ von Liste {i} entfernen") for i in range(40)],
                      "ja": [(f"List {i}", f"一覧 {i}") for i in range(20)] + [("long " * 40, "長い")]}
        self.held_out = {"de": [("Remove ž", "ž entfernen"), ("A list", "Eine Liste")], "ja": []}
        for name, texts in (("learn", self.pairs), ("held_out", self.held_out)):
            for language, some in texts.items():
                with open(os.path.join(self.folder, "text", f"{language}.{name}.tsv"), "w", encoding="utf-8") as file:
                    file.writelines(f"{here}\t{there}\n" for here, there in some)

    def check(self, source_size, english_size):
        out, rows = prepare.prepared(self.folder, ["de", "ja"], source_size, english_size)
        self.assertEqual([(row[0], row[1], row[-1]) for row in rows], [("de", 40, 2), ("ja", 21, 0)])
        pieces = prepare.read_pieces(os.path.join(out, "english.pieces"))
        facts = torch_file.facts_of_safetensors(os.path.join(out, "learn.safetensors"))
        self.assertEqual((facts["languages"], facts["english_vocabulary"], facts["characters.ja"], facts["sentences.ja"]),
                         ("de ja", str(len(pieces)), str(sum(len(there) for _, there in self.pairs["ja"])), "21"))
        for name, texts in (("learn", self.pairs), ("held_out", self.held_out)):
            tensors = score.read_tensors(os.path.join(out, name + ".safetensors"))
            for language, some in texts.items():
                read = []
                for key, tensor in tensors.items():
                    words = key.split(".")
                    if words[0] != language:
                        continue
                    length = int(words[1])
                    self.assertEqual(tensor.shape[1], length)
                    for row in map(list, score.rows_of(tensor)):
                        self.assertEqual(row.count(prepare.END), 1)
                        end = row.index(prepare.END)
                        self.assertEqual(set(row[end + 1:]), {prepare.PADDING} if end + 1 < length else set())
                        self.assertTrue(all(i > prepare.END for i in row[:end]))
                        if words[2] == "english":
                            read.append(prepare.text_of(pieces, row))
                self.assertEqual(sorted(read), sorted(here for here, _ in some if len(here) < 100))
        return out

    def test_with_letters(self):
        with unittest.mock.patch.dict(sys.modules, {"sentencepiece": types.SimpleNamespace(
                SentencePieceTrainer=LettersAlone, SentencePieceProcessor=LettersAlone)}):
            out = self.check(1000, 1000)
            self.assertEqual(sorted(os.listdir(out)), ["english.model", "english.pieces", "held_out.safetensors", "learn.safetensors",
                                                       "source.model", "source.pieces"])

    def test_with_subwords_where_installed(self):
        try:
            import sentencepiece  # noqa: F401
        except ModuleNotFoundError:
            return  # test_with_letters has tested all but SentencePiece itself
        self.check(310, 300)
        with self.assertRaisesRegex(download.Refused, "SentencePiece makes no 5000 subwords of 61 sentences: .*ask for fewer"):
            prepare.prepared(self.folder, ["de", "ja"], 5000, 300)

    def test_rows_stand_under_the_least_length_that_fits(self):
        made, longer = prepare.rows_by_length([[9] * 3, [9] * 7, [9] * 8, [9]], [[8] * 7, [8], [8] * 2, [8] * 20], (8, 12))
        self.assertEqual(longer, 1)
        self.assertEqual({length: count for length, (count, *_) in made.items()}, {8: 2, 12: 1})
        self.assertEqual(list(made[8][1]), [9, 9, 9, 3, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 3])
        self.assertEqual(list(made[12][2]), [8, 8, 3] + [0] * 9)

    def test_text_of(self):
        pieces = ["<pad>", "<unk>", "<s>", "</s>", "⟨1⟩", "<0xC3>", "<0xA9>", "▁", "▁caf", "▁<0x"]
        self.assertEqual(prepare.text_of(pieces, [8, 5, 6, 7, 4, 3, 8, 0]), "café ⟨1⟩")
        self.assertEqual(prepare.text_of(pieces, [2, 9, 5, 1, 8]), "<0x� caf")
        self.assertEqual(prepare.text_of(pieces, [3, 8]), "")


# By sacrebleu 2.6.0, CHRF().corpus_score.
CHRF = [(["the cat sat"], ["the cat sat"], 100.0), (["the cat sat on it"], ["a cat sat on the mat"], 52.67381090554676),
        (["ab", ""], ["ab c", "x"], 55.55555555555556), (["", ""], ["a", "b"], 0.0), (["über Größe", "x"], ["über die Größe", "y"], 40.402817151724804)]


class Scores(unittest.TestCase):
    def test_chrf(self):
        for translations, references, expected in CHRF:
            self.assertAlmostEqual(score.chrf(translations, references), expected, 9)

    def test_chrf_beside_sacrebleu_where_installed(self):
        try:
            from sacrebleu.metrics import CHRF as Theirs
        except ModuleNotFoundError:
            return  # CHRF has its numbers
        for translations, references, _ in CHRF:
            self.assertAlmostEqual(score.chrf(translations, references), Theirs().corpus_score(translations, [references]).score, 9)

    def test_files_of_translations(self):
        pieces = ["<pad>", "<unk>", "<s>", "</s>", "▁aa", "▁bb", "▁cc"]

        def tensor(*rows):
            return torch_file.Tensor("I32", array.array("i", sum(rows, [])).tobytes(), 0, (len(rows), len(rows[0])), (len(rows[0]), 1))

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.safetensors")
            references = {"de.4.english": tensor([4, 5, 3, 0], [6, 3, 0, 0]), "fr.4.english": tensor([5, 3, 0, 0])}
            torch_file.write_safetensors(path, {"de.4.translation": tensor([4, 5, 3]), "fr.4.translation": tensor([5, 3, 6, 6, 6])}, {})
            self.assertEqual(score.scores(path, references, pieces), {"de": 100.0, "fr": 100.0})
            torch_file.write_safetensors(path, {"fr.4.translation": tensor([5], [5])}, {})
            with self.assertRaisesRegex(torch_file.FileFault, "2 rows of fr.4.translation, and what was held out has 1"):
                score.scores(path, references, pieces)
            torch_file.write_safetensors(path, {"hu.4.translation": tensor([5], [5])}, {})
            with self.assertRaisesRegex(torch_file.FileFault, "what was held out has none"):
                score.scores(path, references, pieces)

    def test_gains_and_their_drawing(self):
        baseline = {"de": [50.0, 52.0], "hu": [40.0]}
        models = {"dense": {"de": [50.0, 51.0, 49.0], "hu": [44.0], "is": [30.0]}, "a & b": {"hu": [47.5]}}
        gained = score.gains(models, baseline)
        self.assertEqual(gained, {"dense": {"de": (-2.0, -1.0, 0.0), "hu": (4.0, 4.0, 4.0)}, "a & b": {"hu": (7.5, 7.5, 7.5)}})
        amounts = {"de": 2_400_000, "hu": 900_000, "is": 60_000}
        lines = score.table(list(amounts), amounts, baseline, models, gained)
        self.assertEqual([len(line) for line in lines], [len(lines[0])] * 4)
        self.assertRegex(lines[1], r"de +2400000 +51.00 +50.00 \(-1.00\) *$")
        self.assertRegex(lines[3], r"is +60000 +30.00 *$")
        drawing = xml.etree.ElementTree.fromstring(score.figure(list(amounts), amounts, gained))
        lines = [[tuple(map(float, point.split(","))) for point in line.get("points").split()]
                 for line in drawing.iter("{http://www.w3.org/2000/svg}polyline")]
        self.assertEqual([len(line) for line in lines], [2, 1])
        (de, hu), (other,) = lines
        self.assertTrue(de[0] < hu[0] == other[0] and other[1] < hu[1] < de[1])
        texts = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
        self.assertTrue({"dense", "a & b", "de", "hu", "is", "2.4", "0"} <= set(texts), texts)

    def test_curves_of_losses(self):
        with tempfile.TemporaryDirectory() as folder:
            logs = {"dense": "1,9,,\n2,8,6.0,4.0\n3,7,,\n4,6,3.0,2.0\n6,5,1.0,1.0\n", "b": "1,9,8.0,6.0\n2,8,6.0,5.0\n3,7,2.0,2.0\n"}
            losses = {}
            for name, rows in logs.items():
                path = os.path.join(folder, name + ".csv")
                with open(path, "w", encoding="utf-8") as file:
                    file.write("step,loss,held_out_de,held_out_hu\n" + rows)
                losses[name] = score.read_losses(path)
            self.assertEqual(losses, {"dense": [(2, 5.0), (4, 2.5), (6, 1.0)], "b": [(1, 7.0), (2, 5.5), (3, 2.0)]})
            with open(path, "w", encoding="utf-8") as file:
                file.write("step,loss,held_out_de\n1,9,\n2,8,3.5\n3,8,3\n")
            with self.assertRaisesRegex(score.torch_file.FileFault, "has 2 held-out losses"):
                score.read_losses(path)
        drawing = xml.etree.ElementTree.fromstring(score.curves(losses))
        lines = [[tuple(map(float, point.split(","))) for point in line.get("points").split()]
                 for line in drawing.iter("{http://www.w3.org/2000/svg}polyline")]
        self.assertEqual([len(line) for line in lines], [2, 2])  # without what is measured at the end, of other sentences
        self.assertEqual(lines[0][0][0], lines[1][1][0])
        self.assertTrue(lines[1][0][1] < lines[1][1][1] < lines[0][0][1] < lines[0][1][1])


if __name__ == "__main__":
    unittest.main()
