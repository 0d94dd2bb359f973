"""How well labels alone find errors in the order of steps, and what lint says of clean data.

    python benchmarks/lint.py --data ../shared/data            planted swaps and real order errors
    python benchmarks/lint.py --data ../shared/data --choose   constants chosen on other data
    python benchmarks/lint.py --data ../shared/data --clean    findings an hour on data as they are
    python benchmarks/lint.py --data ../shared/data --calibration   what probabilities are worth
    python benchmarks/lint.py --speed                          10,000 files of 500 segments

A planted swap exchanges two neighbouring segments of a video; segments of one label that then touch
are joined, as they would be in a file of frames. Both swapped segments count as wrong. Figures are
AUC / average precision over segments in percent, means over seeds.

`--choose` tries constants of the order score at random, the same ones for every dataset, and takes
for each dataset those that are best on the others; its figures are the ones to quote. Without it,
figures are by the constants that lint has, which were chosen on all datasets. docs/LOG.md lists
what was tried, and what was set with clean data in view.
"""

import argparse
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from label_data import READERS, captaincook_with_errors

from csl_dist.lint.corpus import Corpus, corpus_of
from csl_dist.lint.findings import TITLES, Kind
from csl_dist.lint.run import lint
from csl_dist.lint.sequences import LabelSequence, Step
from csl_dist.lint.statistics.background import background
from csl_dist.lint.statistics.constants import CONSTANTS, OrderConstants
from csl_dist.lint.statistics.evidence import (
    order_evidence,
    precedence_shares,
    segment_swaps,
    video_evidence,
)
from csl_dist.lint.statistics.grammar import Grammar, first_occurrences
from csl_dist.lint.statistics.planted import (
    Plant,
    drop_step,
    insert_step,
    move_step,
    rename_step,
    swap_neighbours,
)
from csl_dist.types import FloatArray, IntArray

DATASETS = ("knot_tying", "needle_passing", "50salads", "gtea", "cholec80", "breakfast")
RELATED = {"knot_tying": "jigsaws", "needle_passing": "jigsaws"}
"""The same people and gestures: neither is chosen on when the other is reported."""
FIRST_RECIPES = tuple(f"recipe {number}" for number in range(1, 15))
CHOICES: dict[str, tuple[Any, ...]] = {
    "smoothing": (0.03, 0.1, 0.3, 1.0),
    "back_off": (1.0, 2.0, 5.0, 10.0),
    "context_back_off": (1.0, 2.0, 5.0, 10.0, 20.0, 1e9),
    "least_violation": (0.0, 0.5, 1.0, 1.5, 2.0),
    "repeats_for_swap": (0.125, 0.25, 0.5, 1.0, 1e9),
    "predictable": ((0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (2.0, 3.0)),
    "precedence_given_up": (0.0, 0.25, 0.5, 0.75, 1.0),
}
"""Values that constants may have; the extreme ones switch their part of the score off."""
EVIDENCE = ("order", "swap", "surprise", "precedence")
VIEWS = (*EVIDENCE, "plain swap", "plain precedence")
"""What lint says, and beside it the simplest form of both ideas on the same swaps."""
PLAIN_SMOOTHING = 0.5
BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.01)
ERROR_RATE = 0.01
"""Of the segments with a planted error, as lint assumes."""
Scores = dict[str, list[FloatArray]]
NONE: IntArray = np.zeros(0, np.int64)


@dataclass(slots=True)
class Judged:
    """Scores of segments by view, with which of them are wrong."""

    scores: Scores
    wrong: list[IntArray]

    def figures(self, view: str) -> tuple[float, float]:
        """AUC and average precision, percent."""
        from sklearn.metrics import average_precision_score, roc_auc_score

        scores, wrong = np.concatenate(self.scores[view]), np.concatenate(self.wrong)
        return (
            100 * float(roc_auc_score(wrong, scores)),
            100 * float(average_precision_score(wrong, scores)),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--choose", type=int, metavar="N", nargs="?", const=100, default=0)
    parser.add_argument("--clean", action="store_true")
    parser.add_argument("--calibration", action="store_true")
    parser.add_argument("--speed", action="store_true")
    arguments = parser.parse_args()
    if arguments.speed:
        print_speed(num_files=10_000, num_segments=500)
    elif arguments.clean:
        print_clean(arguments.data)
    elif arguments.choose:
        print_choice(arguments.data, arguments.seeds, arguments.choose)
    elif arguments.calibration:
        print_calibration(arguments.data, arguments.seeds)
    else:
        print_planted(arguments.data, arguments.seeds)
        print_real(arguments.data)


def print_planted(data: Path, seeds: int) -> None:
    """AUC / AP of each view; every video swapped, half of them, and half in the statistics too."""
    print("| data | " + " | ".join(VIEWS) + " | half swapped | half, as linted |")
    print("|---" * (len(VIEWS) + 3) + "|")
    for name in DATASETS:
        sequences = list(READERS[name](data))
        steps = without_background(sequences)
        if steps != sequences:
            print(planted_row(f"{name}, steps without background", steps, seeds))
            name = f"{name}, background as a step"
        print(planted_row(name, sequences, seeds), flush=True)


def planted_row(name: str, sequences: list[LabelSequence], seeds: int) -> str:
    corpus = corpus_of(sequences)
    swapped = [planted_in(corpus, share=1.0, seed=seed) for seed in range(seeds)]
    half = [planted_in(corpus, share=0.5, seed=seed) for seed in range(seeds)]
    linted = [planted_in_all(sequences, share=0.5, seed=seed) for seed in range(seeds)]
    cells = [mean_figures(swapped, view) for view in VIEWS]
    return _row([name, *cells, mean_figures(half, "order"), mean_figures(linted, "order")])


def print_choice(data: Path, seeds: int, num_tried: int) -> None:
    """Figures of each dataset by the constants that are best on the others, and by lint's."""
    tried = random_constants(num_tried)
    tests = choice_tests(data, seeds)
    figures = {
        name: np.array([test(constants) for constants in (*tried, CONSTANTS)])
        for name, (_, test) in tests.items()
    }
    print("| data | chosen on other data | half, or all recordings | constants of lint | same |")
    print("|---|---|---|---|---|")
    for name, (family, _) in tests.items():
        others = [figures[other][:-1] for other, (its, _) in tests.items() if its != family]
        best = int(np.argmax(objective(others)))
        cells = [f"{auc:.1f} / {ap:.1f}" for row in (best, -1) for auc, ap in figures[name][row]]
        print(_row([name, *cells]), flush=True)
    values = objective(list(figures.values()))
    print("\nmean average precision, best first:")
    for place in np.argsort(-values).tolist()[:8]:
        print(f"{values[place]:.2f} {(*tried, CONSTANTS)[place]}")
    print(f"{values[-1]:.2f} by lint's own")


def random_constants(count: int) -> tuple[OrderConstants, ...]:
    rng = np.random.default_rng(0)

    def drawn(values: tuple[Any, ...]) -> Any:
        return values[int(rng.integers(len(values)))]

    return tuple(
        OrderConstants(**{name: drawn(values) for name, values in CHOICES.items()})
        for _ in range(count)
    )


def objective(figures: list[FloatArray]) -> FloatArray:
    """Mean average precision of each choice of constants over datasets and both columns."""
    return np.mean([one[:, :, 1].mean(axis=1) for one in figures], axis=0)


Test = Callable[[OrderConstants], tuple[tuple[float, float], tuple[float, float]]]
"""Figures with swaps in copies alone and in what gives the statistics, too."""


def choice_tests(data: Path, seeds: int) -> dict[str, tuple[str, Test]]:
    """By dataset: which others are too near to choose on, and how constants are tried on it."""

    def planted(sequences: list[LabelSequence]) -> Test:
        corpus = corpus_of(sequences)

        def test(constants: OrderConstants) -> tuple[tuple[float, float], tuple[float, float]]:
            copies = [
                planted_in(corpus, share=1.0, seed=s, constants=constants) for s in range(seeds)
            ]
            linted = [
                planted_in_all(sequences, share=0.5, seed=s, constants=constants)
                for s in range(seeds)
            ]
            return figures_of(copies), figures_of(linted)

        return test

    def real(recordings: list[Recording]) -> Test:
        def test(constants: OrderConstants) -> tuple[tuple[float, float], tuple[float, float]]:
            clean = judged_recordings(recordings, clean_reference=True, constants=constants)
            every = judged_recordings(recordings, clean_reference=False, constants=constants)
            return figures_of([clean]), figures_of([every])

        return test

    tests = {
        name: (RELATED.get(name, name), planted(without_background(list(READERS[name](data)))))
        for name in DATASETS
    }
    recordings = list(captaincook_with_errors(data))
    first = [r for r in recordings if r[0].procedure in FIRST_RECIPES]
    last = [r for r in recordings if r[0].procedure not in FIRST_RECIPES]
    tests["captaincook4d, recipes 1 to 13"] = ("recipes 1 to 13", real(first))
    tests["captaincook4d, recipes 15 to 29"] = ("recipes 15 to 29", real(last))
    return tests


def figures_of(judged: list[Judged]) -> tuple[float, float]:
    auc, precision = np.mean([one.figures("order") for one in judged], axis=0).tolist()
    return auc, precision


def without_background(sequences: list[LabelSequence]) -> list[LabelSequence]:
    """As lint reads them: a background class is no step."""
    corpus = corpus_of(sequences)
    background_N = background(corpus)
    if not background_N.any():
        return sequences
    [label] = np.unique(corpus.label_N[background_N]).tolist()
    return [without_class(s, corpus.labels[label]) for s in sequences]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def mean_figures(judged: list[Judged], view: str) -> str:
    auc, precision = np.mean([one.figures(view) for one in judged], axis=0)
    return f"{auc:.0f} / {precision:.0f}"


def without_class(sequence: LabelSequence, label: str) -> LabelSequence:
    return replace(sequence, steps=tuple(s for s in sequence.steps if s.label != label))


def planted_in(
    corpus: Corpus, *, share: float, seed: int, constants: OrderConstants = CONSTANTS
) -> Judged:
    """Swaps in copies of the videos, judged by the other groups' videos as they are."""
    grammar = Grammar(corpus, constants)
    rng = np.random.default_rng(seed)
    judged = Judged(scores={view: [] for view in VIEWS}, wrong=[])
    for videos in corpus.units():
        with grammar.without(videos):
            for video in videos.tolist():
                codes, places = grammar.codes(video), NONE
                if rng.random() < share:
                    codes, places = swap_neighbours(codes, codes, rng) or (codes, places)
                if len(codes):
                    add(judged, grammar, grammar.tables_of(video), codes, places)
    return judged


def add(
    judged: Judged, grammar: Grammar, tables: tuple[int, ...], codes: IntArray, places: IntArray
) -> None:
    """What the present counts say of a sequence of classes of which some places are wrong."""
    evidence = video_evidence(grammar, tables, codes)
    for view in EVIDENCE:
        judged.scores[view].append(getattr(evidence, view))
    judged.scores["plain swap"].append(plain_swap(grammar, tables, codes))
    judged.scores["plain precedence"].append(plain_precedence(grammar, tables, codes))
    wrong = np.zeros(len(evidence.order), np.int64)
    wrong[places] = 1
    judged.wrong.append(wrong)


def plain_swap(grammar: Grammar, tables: tuple[int, ...], codes: IntArray) -> FloatArray:
    """Gain of each segment's better swap under a bigram of segments, start and end included."""
    edge, states = grammar.tables.edge, grammar.tables.num_classes + 1

    def log(first: IntArray, second: IntArray) -> FloatArray:
        pairs, rows = grammar.transitions(tables[-1], first, second)
        return np.log((pairs + PLAIN_SMOOTHING) / (rows + PLAIN_SMOOTHING * states))

    chain = np.concatenate([[edge], codes, [edge]])
    before, left, right, after = (chain[k : len(chain) - 3 + k] for k in range(4))
    gains = log(before, right) + log(right, left) + log(left, after)
    gains -= log(before, left) + log(left, right) + log(right, after)
    return segment_swaps(gains)


def plain_precedence(grammar: Grammar, tables: tuple[int, ...], codes: IntArray) -> FloatArray:
    """Sum of the positive log((1-p)/p) over all other steps of the video."""
    classes, places = first_occurrences(codes)
    _, _, share = precedence_shares(grammar, tables[-1], classes)
    np.fill_diagonal(share, 0.5)
    result = np.zeros(len(codes))
    result[places] = np.maximum(np.log((1 - share) / share), 0).sum(axis=1)
    return result


def planted_in_all(
    sequences: list[LabelSequence],
    *,
    share: float,
    seed: int,
    constants: OrderConstants = CONSTANTS,
) -> Judged:
    """Swaps in the videos themselves: statistics come from videos with swaps, too, as in lint."""
    rng = np.random.default_rng(seed)
    corpus = corpus_of(sequences)
    planted, wrong = [], list[IntArray]()
    for video, sequence in enumerate(sequences):
        label_N, places = corpus.label_N[corpus.span(video)], NONE
        if rng.random() < share:
            label_N, places = swap_neighbours(label_N, label_N, rng) or (label_N, places)
        steps = steps_of([corpus.labels[label] for label in label_N.tolist()])
        planted.append(replace(sequence, steps=steps))
        own = np.zeros(len(steps), np.int64)
        own[places] = 1
        wrong.append(own)
    evidence = order_evidence(Grammar(corpus_of(planted), constants))
    return Judged(scores={view: [getattr(evidence, view)] for view in EVIDENCE}, wrong=wrong)


def print_real(data: Path) -> None:
    """CaptainCook4D: steps that people tagged "Order Error", in recordings with errors."""
    print("\n| CaptainCook4D, real order errors | " + " | ".join(VIEWS) + " | steps | wrong |")
    print("|---" * (len(VIEWS) + 3) + "|")
    recordings = list(captaincook_with_errors(data))
    for title, chosen in (
        ("recipes 1 to 13", lambda p: p in FIRST_RECIPES),
        ("recipes 15 to 29", lambda p: p not in FIRST_RECIPES),
        ("all 13 recipes", lambda p: True),
    ):
        for reference in ("normal recordings", "all recordings"):
            part = [r for r in recordings if chosen(r[0].procedure)]
            judged = judged_recordings(part, clean_reference=reference == "normal recordings")
            cells = [mean_figures([judged], view) for view in VIEWS]
            wrong = np.concatenate(judged.wrong)
            numbers = [str(len(wrong)), str(int(wrong.sum()))]
            print(_row([f"{title}; reference: {reference}", *cells, *numbers]))


Recording = tuple[LabelSequence, dict[Step, set[str]]]


def judged_recordings(
    recordings: list[Recording], *, clean_reference: bool, constants: OrderConstants = CONSTANTS
) -> Judged:
    """Each recording with errors, judged by the other recordings of its recipe."""
    # The same person cooks a recipe several times, so that recordings are left out one by one, as
    # the reference figures do.
    sequences = [replace(sequence, group=None) for sequence, _ in recordings]
    grammar = Grammar(corpus_of(sequences), constants)
    judged = Judged(scores={view: [] for view in VIEWS}, wrong=[])
    with_errors = np.array([bool(tags) for _, tags in recordings])
    for video in np.flatnonzero(with_errors).tolist():
        left_out = np.flatnonzero(with_errors) if clean_reference else np.array([video])
        tags = recordings[video][1]
        ordered = [sequences[video].steps[i] for i in _file_order(grammar.corpus, video)]
        places = [i for i, step in enumerate(ordered) if "Order Error" in tags[step]]
        with grammar.without(left_out):
            tables, codes = grammar.tables_of(video), grammar.codes(video)
            add(judged, grammar, tables, codes, np.array(places, np.int64))
    return judged


def _file_order(corpus: Corpus, video: int) -> list[int]:
    return corpus.file_order_N[corpus.span(video)].tolist()


PLANTS: dict[Kind, tuple[Plant, ...]] = {
    Kind.ORDER: (swap_neighbours, move_step),
    Kind.MISSING: (drop_step,),
    Kind.INSERTED: (insert_step, rename_step),
}


def print_calibration(data: Path, seeds: int) -> None:
    """Share of segments that are wrong, by their probability.

    Errors are planted in the sequences themselves, by other seeds than lint's own, at the rate that
    lint assumes and at a third of it. Errors that the data have of their own count as right, so
    that shares are lower bounds. Nothing is fitted.
    """
    headings = [f"{low:g} to {min(high, 1):g}" for low, high in pairwise(BINS)]
    print("| errors in 1,000 | data | kind | " + " | ".join(headings) + " | 0.5 or more |")
    print("|---" * (len(headings) + 4) + "|")
    for rate in (ERROR_RATE, ERROR_RATE / 3):
        everything: list[tuple[FloatArray, IntArray]] = []
        for name in (*DATASETS, "captaincook4d"):
            sequences = list(READERS[name](data))
            for kind, plants in PLANTS.items():
                rngs = [np.random.default_rng(1000 + seed) for seed in range(2 * seeds)]
                told = [planted_at_rate(sequences, kind, plants, rng, rate) for rng in rngs]
                everything += told
                print(
                    _row([f"{1000 * rate:.0f}", name, kind.value, *said_and_wrong(told)]),
                    flush=True,
                )
        print(_row([f"{1000 * rate:.0f}", "all", "all", *said_and_wrong(everything)]), flush=True)


def said_and_wrong(told: list[tuple[FloatArray, IntArray]]) -> list[str]:
    """What probabilities say and what is wrong, for each bin and for all from 0.5 on."""
    probability = np.concatenate([one[0] for one in told])
    wrong = np.concatenate([one[1] for one in told])
    place = np.digitize(probability, BINS) - 1
    members = [*(place == b for b in range(len(BINS) - 1)), probability >= 0.5]
    return [
        f"{probability[own].mean():.0%}: {wrong[own].mean():.0%} of {int(own.sum())}"
        if own.any()
        else "-"
        for own in members
    ]


def planted_at_rate(
    sequences: list[LabelSequence],
    kind: Kind,
    plants: tuple[Plant, ...],
    rng: np.random.Generator,
    rate: float,
) -> tuple[FloatArray, IntArray]:
    """Probabilities of all segments, and which of these are wrong."""
    corpus = corpus_of(sequences)
    corpus = corpus.only(~background(corpus))
    planted, wrong = [], list[IntArray]()
    for video, sequence in enumerate(sequences):
        label_N, places = corpus.label_N[corpus.span(video)], NONE
        alike = corpus.procedure_V[corpus.video_N()] == corpus.procedure_V[video]
        if len(label_N) and rng.random() < rate * len(label_N):
            plant = plants[int(rng.integers(len(plants)))]
            classes = np.unique(corpus.label_N[alike])
            label_N, places = plant(label_N, classes, rng) or (label_N, places)
        names = [corpus.labels[label] for label in label_N.tolist()]
        planted.append(replace(sequence, steps=steps_of(names)))
        wrong.append(np.zeros(len(names), np.int64))
        wrong[-1][places] = 1
    table = lint(planted).segments
    return table.values[f"{kind.value}_probability"], np.concatenate(wrong)


def steps_of(names: list[str]) -> tuple[Step, ...]:
    return tuple(
        Step(label=name, start_seconds=i, stop_seconds=i + 1) for i, name in enumerate(names)
    )


def print_clean(data: Path) -> None:
    """Findings an hour by kind on the datasets as they are."""
    print("| data | videos | hours | findings | an hour | kinds |")
    print("|---|---|---|---|---|---|")
    examples = []
    for name, reader in READERS.items():
        result = lint(reader(data))
        kinds = Counter(finding.kind for finding in result.findings)
        told = ", ".join(f"{TITLES[kind]}: {kinds[kind]}" for kind in Kind if kinds[kind])
        rate = len(result.findings) / max(result.hours, 1e-9)
        print(
            f"| {name} | {result.num_videos} | {result.hours:.1f} | {len(result.findings)} | "
            f"{rate:.2f} | {told} |"
        )
        examples += [(name, f.video, f.sentence) for f in result.findings]
    print()
    for name, video, sentence in examples:
        print(f"- {name} {video or ''}: {sentence}")


def print_speed(*, num_files: int, num_segments: int) -> None:
    start = time.perf_counter()
    processor = time.process_time()
    result = lint(made_sequences(num_files, num_segments))
    seconds = time.perf_counter() - start
    processor = time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{num_files} files of {num_segments} segments, 60 classes: {seconds:.1f} s, "
        f"{processor:.1f} s of processor time, both with making the steps, "
        f"peak memory {peak:.0f} MB, {len(result.findings)} findings"
    )


def made_sequences(num_files: int, num_segments: int) -> Iterator[LabelSequence]:
    """Random walks over 60 classes that mostly go one step on."""
    rng = np.random.default_rng(0)
    for number in range(num_files):
        moves = rng.choice([1, 2, 3, 57], num_segments, p=[0.85, 0.08, 0.05, 0.02])
        classes = (np.cumsum(moves) % 60).tolist()
        times = np.cumsum(rng.lognormal(2, 0.4, num_segments + 1)).tolist()
        yield LabelSequence(
            video=f"video{number:05d}",
            steps=tuple(
                Step(label=f"step {label}", start_seconds=start, stop_seconds=stop)
                for label, start, stop in zip(classes, times[:-1], times[1:], strict=True)
            ),
            file=f"labels/video{number:05d}.txt",
            seconds=times[-1],
            group=f"person {number % 500}",
        )


if __name__ == "__main__":
    main()
