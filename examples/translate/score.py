# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scores translations by chrF, a language at a time, and draws the gain over models of one language each, as GShard's Figure 6.

    python3 examples/translate/score.py --baseline de.safetensors hu.safetensors is.safetensors \\
        --model "dense" dense.safetensors --model "16 experts" experts.safetensors --figure gain.svg
    python3 examples/translate/score.py --losses "dense" dense.csv --losses "16 experts" experts.csv --curves losses.svg

A file of translations is what `translate` writes: matrices de.24.translation of subwords' numbers, whose row i translates row i of
de.24.source of held_out.safetensors (prepare.py). A model that is given several files of one language, of runs with other seeds, has
their mean, and their least and greatest in the drawing. Python's standard library is all that is needed.

Source: Popović 2015 (chrF), in the form of sacrebleu's chrF2 with six orders and no words.
"""
import argparse
import collections
import csv
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


class Drawing:
    """Lines in a frame (SVG): `x` and `y` give the places of values, whose least and greatest are `low` and `high`, rounded away."""

    def __init__(self, width, low, high):
        self.step = step_of(high - low)
        self.low, self.high = self.step * (low // self.step), -self.step * (-high // self.step)
        self.left, self.top, self.width, self.tall = 64, 24, width, 300
        self.lines = 0
        self.out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.left + width + 170}" height="{self.top + self.tall + 84}" '
                    'font-family="sans-serif" font-size="13">', '<rect width="100%" height="100%" fill="white"/>']

    def y(self, value):
        return self.top + self.tall * (self.high - value) / (self.high - self.low)

    def levels(self, text):
        for number in range(round((self.high - self.low) / self.step) + 1):
            level = self.low + number * self.step
            at_zero = abs(level) < self.step / 2
            self.out.append(f'<path d="M{self.left} {self.y(level):.1f}h{self.width}" stroke="{"#000" if at_zero else "#ddd"}"/>'
                            f'<text x="{self.left - 8}" y="{self.y(level) + 4:.1f}" text-anchor="end">'
                            f'{"0" if at_zero else text.format(level)}</text>')

    def mark(self, x, text, below=""):
        self.out.append(f'<text x="{x:.1f}" y="{self.top + self.tall + 20}" text-anchor="middle">{html.escape(text)}</text>')
        if below:
            self.out.append(f'<text x="{x:.1f}" y="{self.top + self.tall + 36}" text-anchor="middle" font-size="10" fill="#555">'
                            f'{html.escape(below)}</text>')

    def axes(self, across, up):
        self.out.append(f'<text x="{self.left + self.width / 2:.1f}" y="{self.top + self.tall + 60}" text-anchor="middle">{across}</text>')
        self.out.append(f'<text transform="translate(16 {self.top + self.tall / 2:.1f}) rotate(-90)" text-anchor="middle">{up}</text>')

    def line(self, name, places):
        """`places`: [(x, least, value, greatest)]."""
        colour, sign = COLOURS[self.lines % len(COLOURS)], MARKS[self.lines % len(MARKS)]
        points = " ".join(f"{at:.1f},{self.y(middle):.1f}" for at, _, middle, _ in places)
        self.out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for at, least, middle, greatest in places:
            if least < greatest:
                self.out.append(f'<path d="M{at:.1f} {self.y(least):.1f}V{self.y(greatest):.1f}" stroke="{colour}"/>')
            self.out.append(f'<path transform="translate({at:.1f} {self.y(middle):.1f})" d="{sign}" fill="{colour}"/>')
        key = self.top + 14 + 22 * self.lines
        self.lines += 1
        self.out.append(f'<path transform="translate({self.left + self.width + 22} {key - 4})" d="{sign}" fill="{colour}"/>'
                        f'<path d="M{self.left + self.width + 10} {key - 4}h24" stroke="{colour}" stroke-width="2"/>'
                        f'<text x="{self.left + self.width + 42}" y="{key}">{html.escape(name)}</text>')

    def text(self):
        return "\n".join([*self.out, "</svg>", ""])


def figure(order, amounts, gained):
    """Returns a drawing: a line for each model, along the languages from much text to little, over the baselines at zero."""
    values = [0.0] + [x for by_language in gained.values() for three in by_language.values() for x in three]
    drawing = Drawing(max(420, 44 * len(order)), min(values), max(*values, min(values) + 1))
    drawing.levels("{:+.4g}")
    places = [drawing.left + drawing.width * (i + 0.5) / len(order) for i in range(len(order))]
    for place, language in zip(places, order, strict=True):
        drawing.mark(place, language, f"{amounts[language] / 1e6:.2g}")
    drawing.axes("language, and million characters to learn from", "chrF over a model of one language")
    for model, by_language in gained.items():
        drawing.line(model, [(place, *by_language[language]) for place, language in zip(places, order, strict=True)
                             if language in by_language])
    return drawing.text()


def read_losses(path):
    """Returns [(step, held-out loss)] of a log of `translate`, the mean of its languages. Raises FileFault where it has none."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [name for name in rows[0] if name.startswith("held_out")] if rows else []
    measured = [(int(row["step"]), mean([float(row[name]) for name in columns])) for row in rows if columns and row[columns[0]]]
    if len(measured) < 3:
        raise torch_file.FileFault(f"{path} has {len(measured)} held-out losses, and a curve needs two before the one at the end; give "
                                   "translate --log, and a smaller --measure")
    return measured


def curves(losses):
    """Returns a drawing of {model: [(step, loss)]}. The last loss of each is left out, since other sentences are measured at the end."""
    losses = {model: some[:-1] for model, some in losses.items()}
    values = [value for some in losses.values() for _, value in some]
    last = max(step for some in losses.values() for step, _ in some)
    drawing = Drawing(480, min(values), max(max(values), min(values) + 0.01))
    drawing.levels("{:.4g}")
    apart = step_of(last)

    def x(step):
        return drawing.left + drawing.width * step / last

    for number in range(int(last // apart) + 1):
        drawing.mark(x(number * apart), f"{number * apart:g}")
    drawing.axes("steps", "held out, nats a token, mean of the languages")
    for model, some in losses.items():
        drawing.line(model, [(x(step), value, value, value) for step, value in some])
    return drawing.text()


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
    parser.add_argument("--model", nargs="+", action="append", default=[], metavar="NAME FILE", help="a name, and translations")
    parser.add_argument("--losses", nargs=2, action="append", default=[], metavar=("NAME", "CSV"), help="a name, and the log of a run")
    parser.add_argument("--curves", help="where to draw the held-out losses of --losses")
    parser.add_argument("--figure", help="where to draw the gains")
    parser.add_argument("--json", help="a file of the scores, for cmake/docs/figures.py")
    given = parser.parse_args()
    if not given.model and not given.losses:
        parser.error("there is nothing to score; give --model NAME FILE, or --losses NAME CSV with --curves")
    for flag, rows in (("--model", given.model), ("--losses", given.losses)):
        names = [name for name, *_ in rows]
        if len(set(names)) < len(names):
            parser.error(f"{flag} has the name {max(names, key=names.count)!r} twice; give each run its own")
    if bool(given.losses) != bool(given.curves):
        parser.error("--losses and --curves are given together: logs, and where to draw them")
    try:
        if given.curves:
            drawn = curves({name: read_losses(path) for name, path in given.losses})
            with open(given.curves, "w", encoding="utf-8") as file:
                file.write(drawn)
        if not given.model:
            return
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
