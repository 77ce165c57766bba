# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes sentences of messages: without markup, each English one once a language, and divided into those to learn from and those
held out.

    pairs = Pairs()
    pairs.add("de", "Remove <b>{name}</b>?", "<b>{name}</b> entfernen?")   # Remove ⟨1⟩?   ⟨1⟩ entfernen?
    learned, held_out = pairs.divided("de")

Laws: two sentences whose letters are the same are one sentence. A sentence is held out for every language or for none, so that no
language's training text has an English sentence that another one is measured by. Nothing depends on the order of languages.
"""
import collections
import hashlib
import html
import re
import unicodedata

MOST_CHARACTERS = 400
MOST_PLACEHOLDERS = 9
HELD_OUT_PERCENT = 4

TAGS = ("a abbr address b big blockquote br center code dd div dl dt em font format h1 h2 h3 h4 h5 h6 header hr i img italic bold kbd "
        "li ol p pre q s samp script small span strong style sub sup table tbody td text th thead tr tt u ul var").split()
# <b>, </b>, <br/>, <a href="…">, Wesnoth's <img>src=…</img>; <file> in a program's usage is text.
TAG = re.compile(rf"</?(?:{'|'.join(TAGS)})(?:[\s/=][^<>]*)?>", re.IGNORECASE)
BREAKING = re.compile(r"</?(?:br|p|div|li|ul|ol|h\d|hr|td|tr)\b", re.IGNORECASE)
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")  # of Markdown
EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")

# What a program puts in: %s, %2$d, %(name)s, %-5.2f; {}, {0}, {name:>4}; $name, $unit.name|; and signs that stand for themselves.
PLACEHOLDER = re.compile(
    r"(?P<sign>%%|\{\{|\}\})"
    r"|%(?:\((?P<word>[\w.]+)\)|(?P<place>\d+)\$)?[-+#0']*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|[qjztLI])?[diouxXeEfFgGcsSrap](?![a-z])"
    r"|\{(?P<field>[A-Za-z_0-9.\[\]]*)(?:![rsa])?(?::[^{}\s]*)?\}"
    r"|\$(?P<brace>\{)?(?P<name>[A-Za-z_][\w.]*)(?(brace)\}|\|?)")


def mark(number):
    """Returns the sign that stands for a placeholder."""
    return f"⟨{number}⟩"


def without_accelerator(text, sign):
    """Returns a message of a menu without the sign before the letter that chooses it ("_File", "ファイル(_F)"); two signs are one."""
    text = re.sub(rf"\s*\({re.escape(sign)}\w\)", "", text)
    return re.sub(rf"{re.escape(sign)}({re.escape(sign)}|(?=\w))", r"\1", text)


def without_markup(text):
    text = html.unescape(TAG.sub(lambda found: " " if BREAKING.match(found.group()) else "", text))
    return EMPHASIS.sub(r"\2", LINK.sub(r"\1", text))


def signed(text, numbers, grows):
    """Returns a text with its placeholders replaced by signs, and the numbers of those that it has; none if it names an unknown one.
    Those without a name count as arguments by their places. `numbers` is from names to numbers, and grows if told so."""
    used, counts, unknown = [], collections.Counter(), False

    def sign(found):
        nonlocal unknown
        if found["sign"]:
            return found["sign"][0]
        kind = found.group()[0]
        name = found["word"] or found["place"] or found["field"] or found["name"]
        if not name:
            name = str(counts[kind] + (kind == "%"))  # {} counts from 0, %s from 1
            counts[kind] += 1
        if grows:
            numbers.setdefault((kind, name), len(numbers) + 1)
        number = numbers.get((kind, name))
        unknown = unknown or number is None
        used.append(number)
        return mark(number)

    text = PLACEHOLDER.sub(sign, text)
    return (text, None) if unknown else (text, sorted(set(used)))


BREAK = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\s]+")
UNSEEN = re.compile(r"[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ue000-\uf8ff]")  # hints to a printer, and private signs
LETTERS = re.compile(r"[^\W\d_]+")


def tidy(text):
    """Returns a text composed (NFC), on one line, without control characters."""
    return BREAK.sub(" ", UNSEEN.sub("", unicodedata.normalize("NFC", text))).strip()


def key_of(text):
    """Returns the letters of a text: two that differ in capitals, digits, signs or spaces are the same sentence."""
    return "".join(LETTERS.findall(text.casefold()))


def cleaned(english, translation, accelerator=None):
    """Returns a pair of sentences, or why it is none: what of the two a reader would not take for a sentence and its translation."""
    pair = [english, translation]
    if accelerator:
        pair = [without_accelerator(text, accelerator) for text in pair]
    pair = [tidy(without_markup(text)) for text in pair]
    numbers = {}
    english, first = signed(pair[0], numbers, grows=True)
    translation, second = signed(pair[1], numbers, grows=False)
    if first != second:
        return "its placeholders are others"
    if len(numbers) > MOST_PLACEHOLDERS:
        return "it has many placeholders"
    if any(c in text for text in (english, translation) for c in "{}"):
        return "it is a template"
    if max(len(english), len(translation)) > MOST_CHARACTERS:
        return "it is long"
    letters = len(key_of(english))
    if letters < 2 or not key_of(translation) or 2 * letters < len(re.sub(r"⟨\d⟩|\s", "", english)):
        return "it has few letters"
    if key_of(english) == key_of(translation):
        return "it is not translated"
    return english, translation


def paragraphs(english, translation):
    """Yields the paragraphs of a message, where its translation has as many."""
    both = [[part for part in re.split(r"\n\s*\n", text) if part.strip()] for text in (english, translation)]
    return zip(*both) if len(both[0]) == len(both[1]) else [(english, translation)]


def is_held_out(key):
    return int(hashlib.sha256(key.encode()).hexdigest()[:8], 16) % 100 < HELD_OUT_PERCENT


class Pairs:
    """Sentences and their translations, by language."""

    def __init__(self):
        self.found = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
        self.refused = collections.Counter()

    def add(self, language, english, translation, accelerator=None):
        for pair in paragraphs(english, translation):
            made = cleaned(*pair, accelerator)
            if isinstance(made, str):
                self.refused[made] += 1
            else:
                self.found[language][key_of(made[0])][made] += 1

    def divided(self, language):
        """Returns the language's pairs to learn from, and those held out, each in an order that mixes the sources. Of several
        translations of a sentence the one that was found most is taken, of several alike the first by code points."""
        parts = [], []
        for key in sorted(self.found[language], key=lambda key: hashlib.sha256(key.encode()).digest()):
            taken = min(self.found[language][key].items(), key=lambda item: (-item[1], item[0]))[0]
            parts[is_held_out(key)].append(taken)
        return parts
