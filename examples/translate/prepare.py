# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes numbers of the texts that fetch.py got: subwords of SentencePiece, one vocabulary for the sources and one for English.

    python3 -m pip install sentencepiece==0.2.3             # in a venv; or apt-get install python3-sentencepiece
    python3 examples/translate/prepare.py                   # prints the folder, and a table of languages

As GShard has it (appendix A.2): a source sentence does not say in which language it is, and the model has no other word of it. The
folder, ids/ beside text/, gets files that are read without SentencePiece:

    learn.safetensors, held_out.safetensors    for each language and length, such as 24, int32 matrices de.24.source and de.24.english
                                               whose rows are a sentence and its translation: subwords, end, padding
    source.pieces, english.pieces              a line for each subword, "▁" for a space; a number is a line's, from 0
    source.model, english.model                the vocabularies as SentencePiece keeps them

A pair stands under the least of the lengths that both its sentences fit in. Facts beside the matrices: lengths, languages, padding,
unknown, begin, end, source_vocabulary, english_vocabulary, and characters.de and sentences.de of what is learned from.

Laws: `text_of` of a row of English is the sentence, to the character. The same texts and SentencePiece give the same bytes.
"""
import argparse
import array
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")]
import torch_file  # noqa: E402
from download import Refused, bar, say  # noqa: E402
from fetch import default_folder  # noqa: E402
from sentences import MOST_PLACEHOLDERS, mark  # noqa: E402

PADDING, UNKNOWN, BEGIN, END = range(4)
THREADS = 4  # another number adds in another order, and makes other subwords
LENGTHS = (8, 12, 16, 24, 32, 48, 64, 96, 128)
# From much text to little, of several families and scripts.
LANGUAGES = "es de fr hu cs tr nl ru ja fi he ro is eu cy lb".split()


def read_text(folder, language, name):
    """Returns (English, translation) of a language's file."""
    path = os.path.join(folder, "text", f"{language}.{name}.tsv")
    try:
        with open(path, encoding="utf-8") as file:
            return [tuple(line.rstrip("\n").split("\t")) for line in file]
    except FileNotFoundError:
        known = sorted({file.split(".")[0] for file in os.listdir(os.path.join(folder, "text"))}) if os.path.isdir(
            os.path.join(folder, "text")) else []
        raise Refused(f"{path} is not there; " + (f"there are texts in {' '.join(known)}" if known else
                                                  f"run fetch.py {folder} first")) from None


def trained(path, texts, size, rule):
    """Returns SentencePiece's model of `size` subwords for these texts, whose files it makes: path.model and path.pieces."""
    import sentencepiece
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_prefix=path, vocab_size=size, model_type="unigram", character_coverage=0.9995,
            byte_fallback=True, normalization_rule_name=rule, user_defined_symbols=[mark(i + 1) for i in range(MOST_PLACEHOLDERS)],
            pad_id=PADDING, unk_id=UNKNOWN, bos_id=BEGIN, eos_id=END, num_threads=THREADS, minloglevel=2,
            remove_extra_whitespaces=rule != "identity", max_sentence_length=1 << 16)
    except RuntimeError as fault:
        raise Refused(f"SentencePiece makes no {size} subwords of {len(texts)} sentences: {fault}; ask for fewer, or give it more "
                      "text") from fault
    model = sentencepiece.SentencePieceProcessor(model_file=path + ".model")
    with open(path + ".pieces", "w", encoding="utf-8") as file:
        file.writelines(model.id_to_piece(i) + "\n" for i in range(model.get_piece_size()))
    os.remove(path + ".vocab")  # the same pieces, with their scores
    return model


def read_pieces(path):
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


def text_of(pieces, ids):
    """Returns the text of subwords up to the first end: pieces side by side, bytes of a character joined, spaces for "▁"."""
    made = bytearray()
    for i in ids:
        if i == END:
            break
        piece = pieces[i]
        if i > END:
            made += bytes([int(piece[1:-1], 16)]) if len(piece) == 6 and piece.startswith("<0x") else piece.encode()
    return made.decode(errors="replace").replace("▁", " ").removeprefix(" ")


def rows_by_length(sources, english, lengths):
    """Returns {length: (rows, source matrix, English matrix)} and how many pairs are longer than all lengths."""
    made, longer = {length: [0, array.array("i"), array.array("i")] for length in lengths}, 0
    for both in zip(sources, english):
        need = 1 + max(map(len, both))
        length = next((length for length in lengths if length >= need), None)
        if length is None:
            longer += 1
            continue
        made[length][0] += 1
        for matrix, ids in zip(made[length][1:], both):
            matrix.extend(ids)
            matrix.append(END)
            matrix.extend([PADDING] * (length - 1 - len(ids)))
    return {length: tuple(some) for length, some in made.items() if some[0]}, longer


def tensor(rows, length, numbers):
    if sys.byteorder == "big":
        numbers.byteswap()
    return torch_file.Tensor("I32", numbers.tobytes(), 0, (rows, length), (length, 1))


def prepared(folder, languages, source_size, english_size, lengths=LENGTHS):
    """Makes the files of ids/, and returns rows of a table: language, then of what is learned from sentences, characters, subwords of
    source and of English and pairs that are too long, and how many sentences are held out."""
    texts = {(language, name): read_text(folder, language, name) for language in languages for name in ("learn", "held_out")}
    out = os.path.join(folder, "ids")
    os.makedirs(out, exist_ok=True)
    learned = {language: texts[language, "learn"] for language in languages}
    say(f"subwords of the sources: {source_size}")
    source = trained(os.path.join(out, "source"), [there for some in learned.values() for _, there in some], source_size, "nmt_nfkc")
    say(f"subwords of English: {english_size}")
    english = trained(os.path.join(out, "english"), sorted({here for some in learned.values() for here, _ in some}), english_size,
                      "identity")
    facts = {"version": "1", "languages": " ".join(languages), "lengths": " ".join(map(str, lengths)), "padding": str(PADDING),
             "unknown": str(UNKNOWN), "begin": str(BEGIN), "end": str(END), "source_vocabulary": str(source.get_piece_size()),
             "english_vocabulary": str(english.get_piece_size())}
    for language, some in learned.items():
        facts[f"characters.{language}"] = str(sum(len(there) for _, there in some))
        facts[f"sentences.{language}"] = str(len(some))
    rows = {}
    for name in ("learn", "held_out"):
        tensors = {}
        for i, language in enumerate(languages):
            if sys.stderr.isatty():
                bar(i / len(languages), f"{name}: {language:10}")
            pairs = texts[language, name]
            ids = source.encode([there for _, there in pairs]), english.encode([here for here, _ in pairs])
            by_length, longer = rows_by_length(*ids, lengths)
            for length, (count, *matrices) in by_length.items():
                for side, numbers in zip(("source", "english"), matrices):
                    tensors[f"{language}.{length}.{side}"] = tensor(count, length, numbers)
            if name == "learn":
                rows[language] = [language, len(pairs), int(facts[f"characters.{language}"]), *(sum(map(len, one)) for one in ids),
                                  longer, {length: some[0] for length, some in by_length.items()}]
            else:
                rows[language].append(len(pairs))
        if sys.stderr.isatty():
            bar(1, f"{name + ': done':25}\n")
        torch_file.write_safetensors(os.path.join(out, name + ".safetensors"), tensors, facts)
    return out, list(rows.values())


def main():
    parser = argparse.ArgumentParser(description="Makes numbers of the texts that fetch.py got, and prints where they are.")
    parser.add_argument("folder", nargs="?", default=default_folder(), help="that of fetch.py")
    parser.add_argument("--languages", nargs="+", default=LANGUAGES, help=" ".join(LANGUAGES))
    parser.add_argument("--source-vocabulary", type=int, default=8000, help="subwords of all sources")
    parser.add_argument("--english-vocabulary", type=int, default=4000, help="subwords of English")
    given = parser.parse_args()
    try:
        out, rows = prepared(os.path.abspath(given.folder), given.languages, given.source_vocabulary, given.english_vocabulary)
    except ModuleNotFoundError as fault:
        sys.exit(f"prepare.py: {fault}; python3 -m pip install sentencepiece==0.2.3 in a venv, or apt-get install python3-sentencepiece")
    except (Refused, OSError) as fault:
        sys.exit(f"prepare.py: {fault}")
    print(f"{'':10} {'':9} {'':10} {'subwords':>17} {'':8} {'':8} pairs by length, in percent")
    print(f"{'language':10} {'sentences':>9} {'characters':>10} {'source':>8} {'English':>8} {'too long':>8} {'held out':>8}" +
          "".join(f"{length:5}" for length in LENGTHS))
    for language, *numbers, longer, lengths, held_out in rows:
        print(f"{language:10} {numbers[0]:9} {numbers[1]:10} {numbers[2]:8} {numbers[3]:8} {longer:8} {held_out:8}" +
              "".join(f"{100 * lengths.get(length, 0) / max(1, numbers[0]):5.0f}" for length in LENGTHS))
    print(out)


if __name__ == "__main__":
    main()
