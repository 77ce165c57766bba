# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scores translations by chrF, a language at a time, and draws the gain over models of one language each, as GShard's Figure 6.

    python3 examples/translate/score.py --baseline de.safetensors hu.safetensors is.safetensors \\
        --model "dense" dense.safetensors --model "16 experts" experts.safetensors --figure gain.svg

A file of translations is what `translate` writes: matrices de.24.translation of subwords' numbers, whose row i translates row i of
de.24.source of held_out.safetensors (prepare.py). A model that is given several files of one language, of runs with other seeds, has
their mean, and their least and greatest in the drawing. Python's standard library is all that is needed.

Source: Popović 2015 (chrF), in the form of sacrebleu's chrF2 with six orders and no words.
"""
import argparse
import collections
import html
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "..", "benchmarks")]
import torch_file  # noqa: E402
from fetch import default_folder  # noqa: E402
from prepare import read_pieces, text_of  # noqa: E402
from written import write_rows  # noqa: E402

ORDERS = 6
BETA = 2  # recall counts BETA**2 times as much as precision


def grams(text, order):
    return collections.Counter(text[i:i + order] for i in range(len(text) - order + 1))


def chrf(translations, references):
    """Returns the F-score, from 0 to 100, of the character n-grams of all sentences together, spaces apart: the mean precision and
    recall of the orders that both sides have."""
    counts = [[0, 0, 0] for _ in range(ORDERS)]  # of an order: of translations, of references, of both
    for translation, reference in zip(translations, references, strict=True):
        both = ["".join(text.split()) for text in (translation, reference)]
        for order, count in enumerate(counts, 1):
            made, wanted = (grams(text, order) for text in both)
            count[0] += made.total()
            count[1] += wanted.total()
            count[2] += (made & wanted).total()
    used = [count for count in counts if count[0] and count[1]]
    precision = sum(common / made for made, _, common in used) / max(1, len(used))
    recall = sum(common / wanted for _, wanted, common in used) / max(1, len(used))
    below = BETA**2 * precision + recall
    return 100 * (1 + BETA**2) * precision * recall / below if below else 0.0


def rows_of(tensor):
    numbers = memoryview(tensor.bytes()).cast("i")
    width = tensor.shape[1]
    return [numbers[i * width:(i + 1) * width] for i in range(tensor.shape[0])]


def read_tensors(path):
    try:
        with open(path, "rb") as file:
            return torch_file.load_safetensors(file.read())
    except torch_file.FileFault as fault:
        raise torch_file.FileFault(f"{path} is not read: {fault}") from fault


def scores(path, references, pieces):
    """Returns {language: chrF} of a file of translations. Raises FileFault where it has rows that nothing refers to."""
    made, wanted = collections.defaultdict(list), collections.defaultdict(list)
    for name, tensor in read_tensors(path).items():
        language, length, kind = name.split(".")
        if kind != "translation":
            continue
        english = references.get(f"{language}.{length}.english")
        if english is None or english.shape[0] < tensor.shape[0]:
            raise torch_file.FileFault(f"{path} has {tensor.shape[0]} rows of {name}, and what was held out has "
                                       f"{english.shape[0] if english else 'none'}; it was made of other sentences")
        made[language] += [text_of(pieces, row) for row in rows_of(tensor)]
        wanted[language] += [text_of(pieces, row) for row in rows_of(english)[:tensor.shape[0]]]
    return {language: chrf(some, wanted[language]) for language, some in made.items()}


def all_scores(paths, references, pieces):
    """Returns {language: [chrF of each file that has it]}."""
    found = collections.defaultdict(list)
    for path in paths:
        for language, score in scores(path, references, pieces).items():
            found[language].append(score)
    return found


def mean(numbers):
    return sum(numbers) / len(numbers)


def gains(models, baseline):
    """Returns {model: {language: (least, mean, greatest)}} of what a model's scores exceed the baseline's mean by."""
    made = {}
    for model, found in models.items():
        made[model] = {language: tuple(f(found[language]) - mean(baseline[language]) for f in (min, mean, max))
                       for language in found if language in baseline}
    return made


COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"]  # Okabe and Ito: told apart by all eyes
MARKS = ["M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "M-4 -4h8v8h-8z", "M0 -5l5 9h-10z", "M0 -5l5 5l-5 5l-5 -5z"]


def step_of(width):
    """Returns the distance of about six round numbers in a range."""
    step = 1e-3
    while width / step > 8:
        step *= 2.5 if f"{step:e}".startswith("2") else 2
    return step


def figure(order, amounts, gained):
    """Returns a drawing (SVG): a line for each model, along the languages from much text to little, over the baselines at zero."""
    values = [0.0] + [x for by_language in gained.values() for three in by_language.values() for x in three]
    step = step_of(max(1.0, max(values) - min(values)))
    low, high = (step * (min(values) // step), -step * (-max(values) // step))
    high = max(high, low + step)
    left, top, width, tall = 64, 24, max(420, 44 * len(order)), 300

    def x(i):
        return left + width * (i + 0.5) / len(order)

    def y(value):
        return top + tall * (high - value) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 170}" height="{top + tall + 84}" font-family="sans-serif" '
           f'font-size="13">', '<rect width="100%" height="100%" fill="white"/>']
    for number in range(round((high - low) / step) + 1):
        level = low + number * step
        at_zero = abs(level) < step / 2
        out.append(f'<path d="M{left} {y(level):.1f}h{width}" stroke="{"#000" if at_zero else "#ddd"}"/>'
                   f'<text x="{left - 8}" y="{y(level) + 4:.1f}" text-anchor="end">{"0" if at_zero else f"{level:+.4g}"}</text>')
    for i, language in enumerate(order):
        out.append(f'<text x="{x(i):.1f}" y="{top + tall + 20}" text-anchor="middle">{html.escape(language)}</text>'
                   f'<text x="{x(i):.1f}" y="{top + tall + 36}" text-anchor="middle" font-size="10" fill="#555">'
                   f'{amounts[language] / 1e6:.2g}</text>')
    out.append(f'<text x="{left + width / 2:.1f}" y="{top + tall + 60}" text-anchor="middle">language, and million characters to learn '
               'from</text>')
    out.append(f'<text transform="translate(16 {top + tall / 2:.1f}) rotate(-90)" text-anchor="middle">chrF over a model of one language'
               '</text>')
    for number, (model, by_language) in enumerate(gained.items()):
        colour, sign = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        places = [(x(i), by_language[language]) for i, language in enumerate(order) if language in by_language]
        line = " ".join(f"{at:.1f},{y(middle):.1f}" for at, (_, middle, _) in places)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for at, (least, middle, greatest) in places:
            if least < greatest:
                out.append(f'<path d="M{at:.1f} {y(least):.1f}V{y(greatest):.1f}" stroke="{colour}"/>')
            out.append(f'<path transform="translate({at:.1f} {y(middle):.1f})" d="{sign}" fill="{colour}"/>')
        key = top + 14 + 22 * number
        out.append(f'<path transform="translate({left + width + 22} {key - 4})" d="{sign}" fill="{colour}"/>'
                   f'<path d="M{left + width + 10} {key - 4}h24" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{left + width + 42}" y="{key}">{html.escape(model)}</text>')
    return "\n".join([*out, "</svg>", ""])


def table(order, amounts, baseline, models, gained):
    """Returns lines: a language's amount of text, its baseline's chrF, and each model's with its gain."""
    lines = ["language  characters  baseline" + "".join(f"  {model:>16}" for model in models)]
    for language in order:
        line = f"{language:8}  {amounts[language]:10}  " + (f"{mean(baseline[language]):8.2f}" if language in baseline else " " * 8)
        for model, found in models.items():
            gain = f" ({gained[model][language][1]:+.2f})" if language in gained[model] else ""
            line += f"  {f'{mean(found[language]):.2f}' + gain if language in found else '':>16}"
        lines.append(line)
    return lines


def row_of(language, characters, baseline, models):
    """Returns a language's row of a file."""
    own = {"its own model": round(mean(baseline[language]), 2)} if language in baseline else {}
    return {"language": language, "characters": characters} | own | {
        f"{model}, chrF": round(mean(found[language]), 2) for model, found in models.items() if language in found}


def main():
    parser = argparse.ArgumentParser(description="Scores translations, a language at a time.")
    parser.add_argument("--ids", default=os.path.join(default_folder(), "ids"), help="the folder of prepare.py")
    parser.add_argument("--baseline", nargs="+", default=[], metavar="FILE", help="translations by models of one language each")
    parser.add_argument("--model", nargs="+", action="append", required=True, metavar="NAME FILE", help="a name, and translations")
    parser.add_argument("--figure", help="where to draw the gains")
    parser.add_argument("--json", help="a file of the scores, for cmake/docs/figures.py")
    given = parser.parse_args()
    try:
        references = read_tensors(os.path.join(given.ids, "held_out.safetensors"))
        facts = torch_file.facts_of_safetensors(os.path.join(given.ids, "learn.safetensors"))
        pieces = read_pieces(os.path.join(given.ids, "english.pieces"))
        baseline = all_scores(given.baseline, references, pieces)
        models = {name: all_scores(paths, references, pieces) for name, *paths in given.model}
    except (torch_file.FileFault, OSError) as fault:
        sys.exit(f"score.py: {fault}")
    amounts = {language: int(facts[f"characters.{language}"]) for language in facts["languages"].split()}
    order = [language for language in sorted(amounts, key=lambda language: -amounts[language])
             if any(language in found for found in (baseline, *models.values()))]
    gained = gains(models, baseline)
    print("\n".join(table(order, amounts, baseline, models, gained)))
    if given.json:
        write_rows(given.json, [row_of(language, amounts[language], baseline, models) for language in order])
    if given.figure:
        with open(given.figure, "w", encoding="utf-8") as file:
            file.write(figure(order, amounts, gained))


if __name__ == "__main__":
    main()
