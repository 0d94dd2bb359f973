"""Statistics of order against naive versions of the same formulas."""

import math
from itertools import groupby

import numpy as np
import pytest
from made_labels import sequence, usual_videos

from csl_dist.lint.corpus import corpus_of
from csl_dist.lint.sequences import LabelSequence
from csl_dist.lint.statistics import grammar as grammar_module
from csl_dist.lint.statistics.constants import CONSTANTS
from csl_dist.lint.statistics.evidence import order_evidence, video_evidence
from csl_dist.lint.statistics.grammar import Grammar


def random_sequences(count: int, *, seed: int = 0, procedures: int = 2) -> list[LabelSequence]:
    rng = np.random.default_rng(seed)
    return [
        sequence(
            f"v{i}",
            [f"c{c}" for c in rng.integers(0, 6, rng.integers(1, 12))],
            group=f"g{i % 4}",
            procedure=f"p{i % procedures}",
        )
        for i in range(count)
    ]


def states(labels: list[str]) -> list[str]:
    return ["^", "^", *labels, "$", "$"]


def naive_log(triple: tuple[str, str, str], others: list[LabelSequence], procedure: str) -> float:
    """The smoothed model of the module docstring, recounted for each call."""
    before, first, second = triple
    if first == second:
        return 0.0

    def count(sequences: list[LabelSequence], *wanted: str) -> int:
        rows = [
            [label for label, _ in groupby(["^", *(step.label for step in s.steps), "$"])]
            for s in sequences
        ]
        return sum(
            tuple(row[i : i + len(wanted)]) == wanted for row in rows for i in range(len(row))
        )

    own, known = [s for s in others if s.procedure == procedure], CONSTANTS
    share = (count(others, first, second) + known.smoothing) / (
        count(others, first) + known.smoothing * 7
    )
    share = (count(own, first, second) + known.back_off * share) / (
        count(own, first) + known.back_off
    )
    return math.log(
        (count(own, before, first, second) + known.context_back_off * share)
        / (count(own, before, first) + known.context_back_off)
    )


def naive_likelihood(labels: list[str], own: LabelSequence, all_of: list[LabelSequence]) -> float:
    others = [s for s in all_of if s.group != own.group]
    row = states(labels)
    triples = zip(row, row[1:], row[2:], strict=False)
    return sum(naive_log(triple, others, own.procedure or "") for triple in triples)


def test_surprise_of_random_videos_equals_naive_transitions_of_other_groups() -> None:
    sequences = random_sequences(12)
    corpus = corpus_of(sequences)
    evidence = order_evidence(Grammar(corpus))
    for video, own in enumerate(sequences):
        others = [s for s in sequences if s.group != own.group]
        row = states([step.label for step in own.steps])
        triples = zip(row, row[1:], row[2:], strict=False)
        logs = [naive_log(triple, others, own.procedure or "") for triple in triples]
        expected = [-(logs[i] + logs[i + 1]) / 2 for i in range(len(own.steps))]
        assert evidence.surprise[corpus.span(video)] == pytest.approx(expected, rel=1e-5)


def test_swap_of_random_videos_equals_naive_best_swap_with_a_neighbour() -> None:
    sequences = random_sequences(12, seed=1)
    corpus = corpus_of(sequences)
    evidence = order_evidence(Grammar(corpus))
    for video, own in enumerate(sequences):
        labels = [step.label for step in own.steps]
        usual = naive_likelihood(labels, own, sequences)
        gains = []
        for i in range(len(labels) - 1):
            swapped = [*labels[:i], labels[i + 1], labels[i], *labels[i + 2 :]]
            gain = naive_likelihood(swapped, own, sequences) - usual
            joins = states(labels)[i + 1] == labels[i + 1] or labels[i] == states(labels)[i + 4]
            gains.append(min(gain, 0.0) if joins else gain)
        expected = [
            max(gains[max(i - 1, 0) : i + 1], default=0.0) if gains else 0.0
            for i in range(len(labels))
        ]
        assert evidence.swap[corpus.span(video)] == pytest.approx(expected, abs=1e-4)


def test_inserted_of_random_videos_equals_naive_gain_without_the_segment() -> None:
    sequences = [s for s in random_sequences(12, seed=3) if len(s.steps) > 1]
    corpus = corpus_of(sequences)
    evidence = order_evidence(Grammar(corpus))
    for video, own in enumerate(sequences):
        labels = [step.label for step in own.steps]
        usual = naive_likelihood(labels, own, sequences)
        expected = [
            naive_likelihood(labels[:i] + labels[i + 1 :], own, sequences) - usual
            for i in range(len(labels))
        ]
        assert evidence.inserted[corpus.span(video)] == pytest.approx(expected, abs=1e-4)


def test_precedence_of_random_videos_equals_naive_sum_over_other_steps() -> None:
    sequences = random_sequences(40, seed=2, procedures=1)
    corpus = corpus_of(sequences)
    evidence = order_evidence(Grammar(corpus))
    for video, own in enumerate(sequences):
        others = [[t.label for t in s.steps] for s in sequences if s.group != own.group]
        labels = [step.label for step in own.steps]
        expected = []
        for place, label in enumerate(labels):
            total = 0.0
            for other in sorted(set(labels) - {label}):
                both = [o for o in others if label in o and other in o]
                first = labels.index(label) < labels.index(other)
                same = sum((o.index(label) < o.index(other)) == first for o in both)
                share = (same + 0.5) / (len(both) + 1)
                term = math.log((1 - share) / share)
                total += term if term >= CONSTANTS.least_violation else 0.0
            expected.append(total if labels.index(label) == place else 0.0)
        assert evidence.precedence[corpus.span(video)] == pytest.approx(expected, rel=1e-5)


def test_statistics_of_a_video_leave_out_its_whole_group() -> None:
    odd = [sequence(f"odd{i}", ["close", "clean", "cut"], group="odd") for i in range(30)]
    usual = usual_videos(6, group="usual")
    evidence = order_evidence(Grammar(corpus_of([*odd, *usual])))
    assert evidence.precedence[:3] == pytest.approx([2 * math.log(6.5 / 0.5)] * 3)


def test_counts_after_leaving_out_are_what_they_were() -> None:
    grammar = Grammar(corpus_of(random_sequences(10)))
    before = grammar.pairs.copy(), grammar.earlier.copy(), grammar.totals.copy()
    with grammar.without(np.array([0, 3, 5])):
        assert grammar.totals[0, 0] == 7
    after = grammar.pairs, grammar.earlier, grammar.totals
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


def test_videos_of_a_single_group_are_left_out_one_by_one() -> None:
    grammar = Grammar(corpus_of(usual_videos(5, group="only")))
    assert [len(videos) for videos in grammar.corpus.units()] == [1] * 5


def test_rare_classes_beyond_the_limit_share_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar_module, "MAX_CLASSES", 3)
    grammar = Grammar(corpus_of(usual_videos(4)))
    assert grammar.tables.num_pairs == 16
    evidence = video_evidence(grammar, (0,), grammar.codes(0))
    assert np.isfinite(evidence.order).all()


def test_procedure_with_few_videos_backs_off_to_all() -> None:
    many = usual_videos(20, group=None, procedure="often")
    few = [sequence(f"few{i}", ["cut", "prepare"], procedure="once") for i in range(2)]
    evidence = order_evidence(Grammar(corpus_of([*many, *few])))
    assert evidence.precedence[-1] == pytest.approx(math.log(20.5 / 1.5))
