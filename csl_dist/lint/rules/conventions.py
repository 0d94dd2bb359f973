"""Where a whole group or annotator does it otherwise: told once, as a definition.

One person's habit is a question to answer once, not forty places to review.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from csl_dist.lint.corpus import Corpus
from csl_dist.lint.findings import TITLES, Finding, Kind
from csl_dist.lint.reading import Reading
from csl_dist.lint.rules.files import same_labels
from csl_dist.lint.statistics.durations import log_seconds
from csl_dist.types import FloatArray, IntArray

FileKey = tuple[str | None, str | None, str | None]
"""Video, file and annotator."""
ROLES = ("annotator", "group")
HABITS = frozenset(
    {Kind.ORDER, Kind.MISSING, Kind.REPEATED, Kind.INSERTED, Kind.DURATION, Kind.FLICKER}
)
MIN_HABIT_VIDEOS = 3
"""Videos of one person with the same finding before it is a habit."""
HABIT_SHARE = 0.5
"""Of the person's videos, at least."""
OWN_SHARE = 0.75
"""Of all videos with this finding, at least so many are the person's."""
MIN_TRANSITIONS = 4
"""Videos of one person with a transition before it can be drawn elsewhere."""
MIN_OTHER_TRANSITIONS = 12
SEPARATED = 0.98
"""Share of pairs (one of the person's, one of the others') that must differ the same way."""


def told_once(reading: Reading, findings: Sequence[Finding]) -> list[Finding]:
    """Findings with a person's habits joined to one definition each."""
    rest = list(findings)
    for role in ROLES:
        user_of: dict[FileKey, str | None] = {
            (a.video, a.file, a.annotator): getattr(a, role) for a in reading.corpus.about
        }
        num_videos = Counter(
            user for user, _ in {(getattr(a, role), a.video) for a in reading.corpus.about}
        )
        by_label: dict[tuple[Kind, str | None], list[Finding]] = defaultdict(list)
        for finding in rest:
            if finding.kind in HABITS and user_of.get(_file_of(finding)) is not None:
                by_label[finding.kind, finding.label].append(finding)
        for (kind, label), members in by_label.items():
            videos = {user: set[str]() for user in num_videos}
            for finding in members:
                videos[user_of[_file_of(finding)]].add(finding.video or "")
            user = max(videos, key=lambda u: len(videos[u]))
            told = sum(map(len, videos.values()))
            if (
                len(num_videos) > 1
                and len(videos[user]) >= MIN_HABIT_VIDEOS
                and len(videos[user]) >= HABIT_SHARE * num_videos[user]
                and len(videos[user]) >= OWN_SHARE * told
            ):
                habit = [f for f in members if user_of[_file_of(f)] == user]
                taken = set(map(id, habit))
                rest = [f for f in rest if id(f) not in taken]
                rest.append(_habit(role, str(user), kind, label, habit, num_videos[user]))
    return rest


def _file_of(finding: Finding) -> FileKey:
    return finding.video, finding.file, finding.annotator


def _habit(
    role: str, user: str, kind: Kind, label: str | None, habit: list[Finding], num_videos: int
) -> Finding:
    videos = {f.video for f in habit}
    return Finding(
        kind=Kind.DEFINITION,
        video=None,
        label=label,
        score=float(len(videos)),
        sentence=(
            f"{role.capitalize()} {user} differs from the others at `{label}` in {len(videos)} of "
            f"{num_videos} videos ({TITLES[kind].lower()}). For example in {habit[0].video}: "
            f"{habit[0].sentence}"
        ),
        evidence={"videos": len(videos), "of": num_videos, "kind": kind.value, role: user},
    )


def transition_findings(reading: Reading) -> Iterator[Finding]:
    """Transitions that one annotator, or one group, draws earlier or later than all others."""
    corpus = reading.corpus
    copies = {video for videos in same_labels(corpus) for video in videos[1:]}
    more = set(np.flatnonzero(~corpus.counted_V).tolist())
    for role in ROLES:
        pair_N, balance_N = _balances(corpus, copies if role == "annotator" else copies | more)
        users = [getattr(a, role) for a in corpus.about]
        if len({u for u in users if u is not None}) >= 3:
            yield from _drawn_elsewhere(corpus, role, users, pair_N, balance_N)


def _balances(corpus: Corpus, copies: set[int]) -> tuple[IntArray, FloatArray]:
    """Each segment with the next: their pair of classes (-1: none) and log ratio of lengths."""
    pair_N = np.full(corpus.num_segments, -1, np.int64)
    balance_N = np.zeros(corpus.num_segments)
    if corpus.num_segments < 2:
        return pair_N, balance_N
    video_N, label = corpus.video_N(), corpus.label_N.astype(np.int64)
    log_N = log_seconds(corpus)
    balance_N[:-1] = log_N[:-1] - log_N[1:]
    neighbours = (video_N[:-1] == video_N[1:]) & (label[:-1] != label[1:])
    neighbours &= ~np.isin(video_N[:-1], list(copies))
    pair_N[:-1] = np.where(neighbours, label[:-1] * len(corpus.labels) + label[1:], -1)
    return pair_N, balance_N


def _drawn_elsewhere(
    corpus: Corpus,
    role: str,
    users: list[str | None],
    pair_N: IntArray,
    balance_N: FloatArray,
) -> Iterator[Finding]:
    names = sorted({user for user in users if user is not None})
    user_N = np.array([names.index(u) if u is not None else -1 for u in users])[corpus.video_N()]
    order = np.argsort(pair_N, kind="stable")
    bounds = np.flatnonzero(np.diff(pair_N[order])) + 1
    for members in np.split(order, bounds):
        if pair_N[members[0]] < 0 or len(members) < MIN_TRANSITIONS + MIN_OTHER_TRANSITIONS:
            continue
        users_of = user_N[members]
        for user, above in shares_above(users_of, balance_N[members]).items():
            own = balance_N[members[users_of == user]]
            others = balance_N[members[users_of != user]]
            if user < 0 or len(own) < MIN_TRANSITIONS or len(others) < MIN_OTHER_TRANSITIONS:
                continue
            first, second = divmod(int(pair_N[members[0]]), len(corpus.labels))
            later = "later" if above > 0.5 else "earlier"
            yield Finding(
                kind=Kind.DEFINITION,
                video=None,
                label=corpus.labels[first],
                score=float(len(own)),
                sentence=(
                    f"{role.capitalize()} {names[user]} ends `{corpus.labels[first]}` and starts "
                    f"`{corpus.labels[second]}` {later} than the others: the first takes "
                    f"{_shares(own)} of the two in {len(own)} places, {_shares(others)} in "
                    f"{len(others)} places of the others."
                ),
                evidence={"own": len(own), "others": len(others), role: names[user]},
            )


def shares_above(users: IntArray, values: FloatArray) -> dict[int, float]:
    """Users whose values lie on one side of the others', with the share of pairs above.

    By rank sums, so that many users cost one sort.
    """
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(1, len(values) + 1)
    names, inverse, count = np.unique(users, return_inverse=True, return_counts=True)
    above = np.bincount(inverse, ranks) - count * (count + 1) / 2
    share = above / np.maximum(count * (len(values) - count), 1)
    apart = (count < len(values)) & ((share >= SEPARATED) | (share <= 1 - SEPARATED))
    return dict(zip(names[apart].tolist(), share[apart].tolist(), strict=True))


def _shares(balances: FloatArray) -> str:
    low, high = (1 / (1 + np.exp(-np.quantile(balances, [0.1, 0.9])))).tolist()
    return f"{low:.0%} to {high:.0%}"
