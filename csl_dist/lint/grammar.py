"""In what order steps come: counts over all videos, from which a group's own are taken out.

What is said of a video never rests on its own group. Counts are made once; for each group its own
are subtracted, the videos of the group are read, and they are added back. Each procedure has its
own table over the classes that occur in it, and backs off to the table of all videos.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from csl_dist.lint.corpus import Corpus, FloatArray, IntArray

SMOOTHING = 0.1
"""Added to each count of a transition over all videos."""
BACK_OFF = 5.0
"""So many transitions of its own outweigh what all procedures together say."""
MAX_TABLE = 50_000_000
"""Entries of all tables of procedures; past it, procedures with fewer videos have none."""
MAX_CLASSES = 2_000
"""The most frequent classes have statistics of their own; rarer ones share the last code."""


@dataclass(slots=True)
class PairCounts:
    """Counts of ordered pairs of classes, one square table a procedure plus one of all videos."""

    pair: IntArray
    """Flat: table after table."""
    row: IntArray
    """Sums over second members, flat."""

    def add(self, keys: IntArray, rows: IntArray, sign: int) -> None:
        np.add.at(self.pair, keys, sign)
        np.add.at(self.row, rows, sign)


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
        self.pair_base, self.row_base = [0], [0]
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
            self.pair_base.append(base)
            self.stride.append(stride)
            self.local.append(local)

    def keys(self, table: int, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
        """Positions of pairs and of their rows in the flat counts."""
        local, stride = self.local[table], self.stride[table]
        rows = local[first]
        return self.pair_base[table] + rows * stride + local[second], self.row_base[table] + rows


def _classes_of_procedures(corpus: Corpus, code: IntArray) -> list[IntArray]:
    procedure_N = corpus.procedure_V[corpus.video_N()]
    return [
        np.unique(code[corpus.label_N[procedure_N == p]]) for p in range(len(corpus.procedures))
    ]


class Grammar:
    """Transitions between segments and pairwise precedence of classes, over all videos."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.tables = Tables(corpus)
        self.transitions = self._empty()
        self.precedence = self._empty()
        num_tables = len(self.tables.stride)
        self.videos = np.zeros(num_tables, np.int64)
        self.present = np.zeros(self.tables.num_rows, np.int64)
        self.repeats = np.zeros((num_tables, 2), np.int64)
        """Segments whose class comes again in the same video; all segments."""
        for video in range(corpus.num_videos):
            self._count(video, +1)

    def _empty(self) -> PairCounts:
        pairs, rows = self.tables.num_pairs, self.tables.num_rows
        return PairCounts(pair=np.zeros(pairs, np.int32), row=np.zeros(rows, np.int32))

    def codes(self, video: int) -> IntArray:
        """Classes of a video's segments as states of the tables."""
        return self.tables.code[self.corpus.label_N[self.corpus.span(video)]]

    def tables_of(self, video: int) -> tuple[int, ...]:
        """The table of all videos, then that of the video's procedure where it has one."""
        own = int(self.tables.table_of_procedure[self.corpus.procedure_V[video]])
        return (0, own) if own else (0,)

    def _count(self, video: int, sign: int) -> None:
        codes = self.codes(video)
        if not len(codes):
            return
        states = np.concatenate([[self.tables.edge], codes, [self.tables.edge]])
        moved = states[:-1] != states[1:]
        first, second = states[:-1][moved], states[1:][moved]
        classes = first_occurrences(codes)[0]
        earlier, later = np.triu_indices(len(classes), 1)
        occurrences = np.bincount(codes)[codes]
        repeats = (int((occurrences > 1).sum()), len(codes))
        for table in self.tables_of(video):
            self.transitions.add(*self.tables.keys(table, first, second), sign)
            pairs = self.tables.keys(table, classes[earlier], classes[later])
            self.precedence.add(*pairs, sign)
            self.videos[table] += sign
            self.repeats[table] += (sign * repeats[0], sign * repeats[1])
            self.present[self.rows(table, classes)] += sign

    def rows(self, table: int, classes: IntArray) -> IntArray:
        return self.tables.row_base[table] + self.tables.local[table][classes]

    @contextmanager
    def without(self, videos: IntArray) -> Iterator[None]:
        """Takes these videos out of all counts for a while."""
        for video in videos:
            self._count(int(video), -1)
        try:
            yield
        finally:
            for video in videos:
                self._count(int(video), +1)

    def log_transition(
        self, tables: tuple[int, ...], first: IntArray, second: IntArray
    ) -> FloatArray:
        """Log-probability of `second` after `first`, smoothed; 0 where a label goes on."""
        pairs, rows = self.tables.keys(0, first, second)
        pair, row = self.transitions.pair, self.transitions.row
        states = self.tables.num_classes + 1
        share = (pair[pairs] + SMOOTHING) / (row[rows] + SMOOTHING * states)
        for table in tables[1:]:
            pairs, rows = self.tables.keys(table, first, second)
            share = (pair[pairs] + BACK_OFF * share) / (row[rows] + BACK_OFF)
        return np.where(first == second, 0.0, np.log(share))

    def counts(
        self, counts: PairCounts, table: int, first: IntArray, second: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Counts of pairs, and of their first members with anything."""
        pairs, rows = self.tables.keys(table, first, second)
        return counts.pair[pairs], counts.row[rows]

    def repeated_share(self, table: int) -> float:
        """Share of segments whose class comes more than once in its video, 0 to 1."""
        repeated, total = self.repeats[table]
        return float(repeated) / max(float(total), 1.0)


def first_occurrences(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct classes in order of their first segment, and the places of these segments."""
    classes, places = np.unique(codes, return_index=True)
    order = np.argsort(places)
    return classes[order], places[order]
