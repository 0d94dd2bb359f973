"""In what order steps come: counts over all videos, from which a group's own are taken out.

What is said of a video never rests on its own group. Counts are made once; for each group its own
are subtracted, the videos of the group are read, and they are added back. Each procedure has its
own table over the classes that occur in it, and backs off to the table of all videos.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np

from csl_dist.lint.corpus import Corpus
from csl_dist.lint.statistics.constants import CONSTANTS, OrderConstants
from csl_dist.types import FloatArray, IntArray

MAX_TABLE = 50_000_000
"""Entries of all tables of procedures; past it, procedures with fewer videos have none."""
MAX_CLASSES = 2_000
"""The most frequent classes have statistics of their own; rarer ones share the last code."""


class Tables:
    """Where a pair of classes of a procedure lies in the flat counts.

    Table 0 is of all videos. A state past the last class stands for the start and the end.
    """

    def __init__(self, corpus: Corpus) -> None:
        frequency = np.bincount(corpus.label_N, minlength=len(corpus.labels))
        self.code = np.empty(len(corpus.labels), np.int64)
        self.code[np.argsort(-frequency, kind="stable")] = np.minimum(
            np.arange(len(corpus.labels)), MAX_CLASSES - 1
        )
        self.num_classes = min(len(corpus.labels), MAX_CLASSES)
        self.edge = self.num_classes
        members = _classes_of_procedures(corpus, self.code)
        self.stride = [self.num_classes + 1]
        self.pair_base, self.row_base, self.triple_base = [0], [0], [0]
        self.local = [np.arange(self.num_classes + 1)]
        self.table_of_procedure = np.zeros(len(corpus.procedures), np.int64)
        self._add_procedures(corpus, members)
        self.num_pairs = self.pair_base[-1] + self.stride[-1] ** 2
        self.num_rows = self.row_base[-1] + self.stride[-1]

    def _add_procedures(self, corpus: Corpus, members: list[IntArray]) -> None:
        videos = np.bincount(corpus.procedure_V, minlength=len(corpus.procedures))
        if len(corpus.procedures) < 2:
            return
        for procedure in np.argsort(-videos, kind="stable"):
            stride = len(members[procedure]) + 1
            base = self.pair_base[-1] + self.stride[-1] ** 2
            if videos[procedure] < 2 or base + stride**2 > MAX_TABLE:
                continue
            local = np.full(self.num_classes + 1, -1)
            local[members[procedure]] = np.arange(stride - 1)
            local[self.edge] = stride - 1
            self.table_of_procedure[procedure] = len(self.stride)
            self.row_base.append(self.row_base[-1] + self.stride[-1])
            self.triple_base.append(self.triple_base[-1] + self.stride[-1] ** 3)
            self.pair_base.append(base)
            self.stride.append(stride)
            self.local.append(local)

    def keys(self, table: int, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
        """Positions of pairs and of their rows in the flat counts."""
        local, stride = self.local[table], self.stride[table]
        rows = local[first]
        return self.pair_base[table] + rows * stride + local[second], self.row_base[table] + rows

    def triple_keys(
        self, table: int, before: IntArray, first: IntArray, second: IntArray
    ) -> IntArray:
        """Numbers of three states in a row."""
        local, stride = self.local[table], self.stride[table]
        pairs = local[before] * stride + local[first]
        return self.triple_base[table] + pairs * stride + local[second]


def _classes_of_procedures(corpus: Corpus, code: IntArray) -> list[IntArray]:
    procedure_N = corpus.procedure_V[corpus.video_N()]
    return [
        np.unique(code[corpus.label_N[procedure_N == p]]) for p in range(len(corpus.procedures))
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Positions in the flat counts, and how often some videos have them."""

    pairs: IntArray
    num_pairs: IntArray
    triples: IntArray
    num_triples: IntArray
    rows: IntArray
    num_rows: IntArray
    earlier: IntArray
    num_earlier: IntArray
    present: IntArray
    num_present: IntArray
    tables: IntArray
    """One row a table: videos, segments whose class comes again, segments."""


class Grammar:
    """Transitions between segments and pairwise precedence of classes, over all videos."""

    def __init__(self, corpus: Corpus, constants: OrderConstants = CONSTANTS) -> None:
        self.corpus = corpus
        self.constants = constants
        self.tables = Tables(corpus)
        self.pairs = np.zeros(self.tables.num_pairs, np.int32)
        """How often a class directly follows another; flat, table after table."""
        self.rows_of_pairs = np.zeros(self.tables.num_rows, np.int32)
        """How often anything follows a class."""
        self.earlier = np.zeros(self.tables.num_pairs, np.int32)
        """Videos in which a class first comes before another."""
        self.present = np.zeros(self.tables.num_rows, np.int32)
        """Videos that have a class."""
        self.totals = np.zeros((len(self.tables.stride), 3), np.int64)
        self._triple_keys = self._all_triples()
        """Of all three states in a row that were seen, rising: few of those that could be."""
        self._triples = np.zeros(len(self._triple_keys), np.int32)
        self._own: dict[bytes, Counts] = {}
        """Of every group, which is taken out and put back once or twice."""
        for videos in corpus.units():
            self._own[videos.tobytes()] = counts = self._counts(videos)
            self._add(counts, +1)
        tables = range(len(self.tables.stride))
        self.predictability = np.array([self._predictability(table) for table in tables])
        """By table: mean probability of a transition by all the others, 0 to 1."""

    def codes(self, video: int) -> IntArray:
        """Classes of a video's segments as states of the tables."""
        return self.tables.code[self.corpus.label_N[self.corpus.span(video)]]

    def tables_of(self, video: int) -> tuple[int, ...]:
        """The table of all videos, then that of the video's procedure where it has one."""
        own = int(self.tables.table_of_procedure[self.corpus.procedure_V[video]])
        return (0, own) if own else (0,)

    def num_videos(self, table: int) -> int:
        return int(self.totals[table, 0])

    def _counts(self, videos: IntArray) -> Counts:
        """What some videos have, over all tables that they belong to."""
        parts: list[tuple[IntArray, ...]] = []
        totals = np.zeros_like(self.totals)
        for video in videos[self.corpus.counted_V[videos]].tolist():
            codes = self.codes(video)
            if not len(codes):
                continue
            states = self._states(codes)
            first, second = states[:-1], states[1:]
            classes, _ = first_occurrences(codes)
            before, after = _pairs_in_order(len(classes))
            repeated = int((np.bincount(codes)[codes] > 1).sum())
            for table in self.tables_of(video):
                pairs, rows = self.tables.keys(table, first, second)
                earlier, _ = self.tables.keys(table, classes[before], classes[after])
                triples = np.searchsorted(self._triple_keys, self._triples_of(table, states))
                parts.append((pairs, rows, earlier, self.rows(table, classes), triples))
                totals[table] += (1, repeated, len(codes))
        none = np.zeros(0, np.int64)
        columns = [np.concatenate([none, *(p[k] for p in parts)]) for k in range(5)]
        counted = [np.unique(column, return_counts=True) for column in columns]
        return Counts(
            pairs=counted[0][0],
            num_pairs=counted[0][1],
            rows=counted[1][0],
            num_rows=counted[1][1],
            earlier=counted[2][0],
            num_earlier=counted[2][1],
            present=counted[3][0],
            num_present=counted[3][1],
            triples=counted[4][0],
            num_triples=counted[4][1],
            tables=totals,
        )

    def _states(self, codes: IntArray) -> IntArray:
        """Start, classes and end, where a label that goes on stands once."""
        states = np.concatenate([[self.tables.edge], codes, [self.tables.edge]])
        return states[np.concatenate([[True], states[1:] != states[:-1]])]

    def _triples_of(self, table: int, states: IntArray) -> IntArray:
        return self.tables.triple_keys(table, states[:-2], states[1:-1], states[2:])

    def _all_triples(self) -> IntArray:
        found: list[IntArray] = [np.zeros(0, np.int64)]
        for video in np.flatnonzero(self.corpus.counted_V).tolist():
            states = self._states(self.codes(video))
            found += [self._triples_of(table, states) for table in self.tables_of(video)]
        return np.unique(np.concatenate(found))

    def _add(self, counts: Counts, sign: int) -> None:
        # Positions are unique, so that plain indexing adds each count once.
        self.pairs[counts.pairs] += sign * counts.num_pairs
        self._triples[counts.triples] += sign * counts.num_triples
        self.rows_of_pairs[counts.rows] += sign * counts.num_rows
        self.earlier[counts.earlier] += sign * counts.num_earlier
        self.present[counts.present] += sign * counts.num_present
        self.totals += sign * counts.tables

    def rows(self, table: int, classes: IntArray) -> IntArray:
        """Positions of classes in counts of single classes."""
        return self.tables.row_base[table] + self.tables.local[table][classes]

    @contextmanager
    def without(self, videos: IntArray) -> Iterator[None]:
        """Takes these videos out of all counts for a while."""
        counts = self._own.get(videos.tobytes()) or self._counts(videos)
        self._add(counts, -1)
        try:
            yield
        finally:
            self._add(counts, +1)

    def log_transition(
        self, tables: tuple[int, ...], before: IntArray, first: IntArray, second: IntArray
    ) -> FloatArray:
        """Log-probability of `second` after `before` and `first`; 0 where a label goes on."""
        known = self.constants
        pairs, rows = self.transitions(0, first, second)
        states = self.tables.num_classes + 1
        share = (pairs + known.smoothing) / (rows + known.smoothing * states)
        for table in tables[1:]:
            pairs, rows = self.transitions(table, first, second)
            share = (pairs + known.back_off * share) / (rows + known.back_off)
        contexts, _ = self.transitions(tables[-1], before, first)
        triples = self._seen(self.tables.triple_keys(tables[-1], before, first, second))
        share = (triples + known.context_back_off * share) / (contexts + known.context_back_off)
        return np.where(first == second, 0.0, np.log(share))

    def _seen(self, triple_keys: IntArray) -> IntArray:
        """How often three states came in a row."""
        if not len(self._triple_keys):
            return np.zeros_like(triple_keys)
        place = np.searchsorted(self._triple_keys, triple_keys)
        place = np.minimum(place, len(self._triple_keys) - 1)
        return np.where(self._triple_keys[place] == triple_keys, self._triples[place], 0)

    def transitions(
        self, table: int, first: IntArray, second: IntArray
    ) -> tuple[IntArray, IntArray]:
        """How often each second class directly follows the first, and anything does."""
        pairs, rows = self.tables.keys(table, first, second)
        return self.pairs[pairs], self.rows_of_pairs[rows]

    def _predictability(self, table: int) -> float:
        """Each transition is left out in turn, so that what was seen once predicts nothing."""
        base, stride = self.tables.pair_base[table], self.tables.stride[table]
        own = self.pairs[base : base + stride**2]
        seen = np.flatnonzero(own)
        counts = own[seen].astype(np.float64)
        rows = self.rows_of_pairs[self.tables.row_base[table] + seen // stride]
        likely = counts * (counts - 1) / np.maximum(rows - 1, 1)
        return float(likely.sum() / max(counts.sum(), 1.0))

    def repeated_share(self, table: int) -> float:
        """Share of segments whose class comes more than once in its video, 0 to 1."""
        _, repeated, total = self.totals[table]
        return float(repeated) / max(float(total), 1.0)


@cache
def _pairs_in_order(count: int) -> tuple[IntArray, IntArray]:
    before, after = np.triu_indices(count, 1)
    return before, after


def first_occurrences(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct classes in order of their first segment, and the places of these segments."""
    classes, places = np.unique(codes, return_index=True)
    order = np.argsort(places)
    return classes[order], places[order]
