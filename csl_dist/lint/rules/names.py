"""Findings about class names: spelling, and classes that one person alone uses."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from itertools import combinations

import numpy as np

from csl_dist.lint.corpus import Corpus
from csl_dist.lint.findings import Finding, Kind
from csl_dist.lint.reading import Reading
from csl_dist.lint.segments import SegmentTable
from csl_dist.words import counted

MIN_LETTERS = 4
"""Shorter names differ by a letter on purpose."""
RARE_SPELLING = 0.1
"""A name that differs by a letter is told where it is so much rarer than the other."""
MIN_SOLE_VIDEOS = 2
"""Videos in which the only user of a class must have used it."""
MIN_OTHER_VIDEOS = 5
"""Videos by others in the same procedures, which might have had the class too."""


def class_name_findings(reading: Reading) -> Iterator[Finding]:
    """Names that differ by case, blanks or one letter."""
    corpus = reading.corpus
    counts = np.bincount(corpus.label_N, minlength=len(corpus.labels)).tolist()
    by_name = dict(zip(corpus.labels, counts, strict=True))
    same = defaultdict(list)
    for name in corpus.labels:
        same[_plain(name)].append(name)
    for names in same.values():
        for first, second in combinations(sorted(names, key=by_name.__getitem__), 2):
            yield _names(first, second, by_name, "case, blanks or signs", 1.0)
    for first, second in _one_letter_apart(list(same)):
        for rare, common in combinations(
            sorted([*same[first], *same[second]], key=by_name.__getitem__), 2
        ):
            if _plain(rare) != _plain(common) and by_name[rare] <= RARE_SPELLING * by_name[common]:
                yield _names(rare, common, by_name, "one letter", 0.5)


def unlisted_findings(segments: SegmentTable, listed: Collection[str]) -> Iterator[Finding]:
    """Names that label files use and the dataset's list of classes does not have."""
    counts = np.bincount(segments.label_N, minlength=len(segments.labels)).tolist()
    for name, count in zip(segments.labels, counts, strict=True):
        if listed and count and name not in listed:
            yield Finding(
                kind=Kind.CLASS_NAMES,
                video=None,
                label=name,
                score=float(len(segments)),
                sentence=(
                    f"`{name}` ({counted(count, 'step')}) is not in the dataset's list of classes."
                ),
                evidence={"steps": count},
            )


def _plain(name: str) -> str:
    """A name without case, blanks and signs; a name of signs alone stays."""
    return re.sub(r"[\W_]+", "", name).casefold() or name.strip()


def _one_letter_apart(names: list[str]) -> list[tuple[str, str]]:
    """Pairs that become equal by dropping or changing one letter; digits never count."""
    shortened = defaultdict(set)
    for name in names:
        if len(name) >= MIN_LETTERS:
            shortened[name].add(name)
            for i, letter in enumerate(name):
                if letter.isalpha():
                    shortened[name[:i] + name[i + 1 :]].add(name)
    pairs = {
        pair
        for members in shortened.values()
        if len(members) > 1
        for pair in combinations(sorted(members), 2)
    }
    return sorted(pair for pair in pairs if _distance_is_one(*pair))


def _distance_is_one(first: str, second: str) -> bool:
    """One letter changed, added or dropped; not two neighbours turned round."""
    if len(first) > len(second):
        first, second = second, first
    at = next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(first)
    )
    if len(first) == len(second):
        return first[at + 1 :] == second[at + 1 :] and not (first[at] + second[at]).isdecimal()
    return first[at:] == second[at + 1 :] and second[at].isalpha()


def _names(
    rare: str, common: str, counts: dict[str, int], difference: str, weight: float
) -> Finding:
    return Finding(
        kind=Kind.CLASS_NAMES,
        video=None,
        label=rare,
        score=weight * counts[common] / max(counts[rare], 1),
        sentence=(
            f"`{rare}` ({counted(counts[rare], 'step')}) and "
            f"`{common}` ({counted(counts[common], 'step')}) "
            f"differ by {difference} only; they may be one class."
        ),
        evidence={"rare": counts[rare], "common": counts[common], "name": common},
    )


def sole_user_findings(reading: Reading) -> Iterator[Finding]:
    """Classes that one annotator, or else one group, alone uses."""
    corpus = reading.corpus
    for role in ("annotator", "group"):
        users = [getattr(about, role) for about in corpus.about]
        if len({user for user in users if user is not None}) >= 3:
            yield from _sole_users(corpus, role, users)


def _sole_users(corpus: Corpus, role: str, users: list[str | None]) -> Iterator[Finding]:
    # Files of one video count once, unless it is their annotators that differ.
    counted = np.flatnonzero(corpus.counted_V).tolist()
    files = list(range(corpus.num_files)) if role == "annotator" else counted
    videos_of_label: dict[int, list[int]] = defaultdict(list)
    for video in files:
        for label in np.unique(corpus.label_N[corpus.span(video)]).tolist():
            videos_of_label[label].append(video)
    for label, videos in videos_of_label.items():
        [*only] = {users[video] for video in videos}
        if len(only) != 1 or only[0] is None or len(videos) < MIN_SOLE_VIDEOS:
            continue
        procedures = {int(corpus.procedure_V[video]) for video in videos}
        alike = [v for v in files if int(corpus.procedure_V[v]) in procedures]
        by_user = Counter(users[video] for video in alike)
        others = len(alike) - by_user[only[0]]
        # A habit shows where its owner uses the class in most videos and nobody else ever does.
        if others < MIN_OTHER_VIDEOS or len(videos) < by_user[only[0]] / 2 or len(by_user) < 3:
            continue
        yield Finding(
            kind=Kind.SOLE_USER,
            video=None,
            label=corpus.labels[label],
            score=len(videos) * others,
            sentence=(
                f"Only {role} {only[0]} uses `{corpus.labels[label]}`: in {len(videos)} of "
                f"{by_user[only[0]]} videos, in none of {others} videos by {len(by_user) - 1} "
                "others."
            ),
            evidence={"videos": len(videos), "others": others, role: str(only[0])},
        )
