"""Findings about time: odd durations, flicker, gaps, overlaps, steps outside of the video.

What most of a dataset does is its style and not told place by place.
"""

from collections.abc import Iterator

import numpy as np

from csl_dist.lint.corpus import Corpus
from csl_dist.lint.findings import Finding, Kind, TimeUnit
from csl_dist.lint.reading import Reading, about_place
from csl_dist.lint.statistics.durations import duration_sets, log_seconds
from csl_dist.types import BoolArray, FloatArray
from csl_dist.words import counted

ODD_DISTANCE = 5.0
"""Robust distances from the median from which a duration may be odd."""
ODD_FACTOR = 2.0
"""And so many times shorter, or longer, than every other one."""
FLICKER_FRAMES = 3
MOST_FLICKER_SECONDS = 1.0
"""Where labels are sparse, several frames are no flicker any more; a single one still is. Set with
the findings on clean 50Salads in view."""
FLICKER_SECONDS = 0.2
"""A flicker's length where the length of a frame is not known."""
FLICKER_SHARE = 0.1
"""Of the usual duration of its class, at most."""
RARE_STYLE = 0.05
"""Gaps or overlaps at more than this share of neighbours are the dataset's style."""


def duration_findings(reading: Reading) -> Iterator[Finding]:
    """Steps much shorter or longer than every step of the class in other groups' videos."""
    text = reading.length_text
    corpus, evidence = reading.corpus, reading.durations
    log_N, video_N, counted_N = log_seconds(corpus), corpus.video_N(), corpus.counted_N()
    odd = np.flatnonzero(evidence.distance >= ODD_DISTANCE)
    # All members of the set that a step is compared with, whatever these are compared with.
    sets = [(keys, np.argsort(keys, kind="stable")) for keys in duration_sets(corpus)]
    for n in odd.tolist():
        keys, order = sets[evidence.level[n]]
        first, last = np.searchsorted(keys, [keys[n], keys[n] + 1], sorter=order)
        members = order[first:last]
        others = members[
            counted_N[members] & (corpus.unit_V[video_N[members]] != corpus.unit_V[video_N[n]])
        ]
        if len(others) < 2 or corpus.stop_N[n] <= corpus.start_N[n]:
            continue
        low, high = float(np.exp(log_N[others].min())), float(np.exp(log_N[others].max()))
        seconds = float(corpus.stop_N[n] - corpus.start_N[n])
        frame = corpus.about[int(video_N[n])].frame_seconds or 0.0
        # A label per frame is up to a frame too short.
        if low / ODD_FACTOR < seconds + frame and seconds < high * ODD_FACTOR:
            continue
        yield _at(
            corpus,
            n,
            int(video_N[n]),
            kind=Kind.DURATION,
            score=float(evidence.distance[n]),
            sentence=(
                f"`{corpus.name(n)}` lasts {text(seconds)} here, {text(low)} to "
                f"{text(high)} in {len(others)} other places."
            ),
            evidence={"seconds": seconds, "least": low, "most": high, "others": len(others)},
        )


def flicker_findings(reading: Reading) -> Iterator[Finding]:
    """Segments of a few frames between two of the same label."""
    text = reading.length_text
    corpus, video_N = reading.corpus, reading.corpus.video_N()
    for n in np.flatnonzero(flickers(reading)).tolist():
        seconds = float(corpus.stop_N[n] - corpus.start_N[n])
        frame = corpus.about[int(video_N[n])].frame_seconds
        frames = round(seconds / frame) if frame else 0
        length = f"{counted(frames, 'frame')} ({text(seconds)})" if frames else ""
        usual = float(reading.durations.usual_seconds[n])
        rest = "" if np.isnan(usual) else f"; it usually lasts {text(usual)}"
        yield _at(
            corpus,
            n,
            int(video_N[n]),
            kind=Kind.FLICKER,
            score=1 / max(seconds, 1e-3),
            sentence=(
                f"`{corpus.name(n)}` lasts {length or text(seconds)} inside of "
                f"`{corpus.name(n - 1)}`{rest}."
            ),
            evidence={"seconds": seconds},
        )


def flickers(reading: Reading) -> BoolArray:
    """True at segments that flicker."""
    corpus, usual_N = reading.corpus, reading.durations.usual_seconds
    label, video_N = corpus.label_N, corpus.video_N()
    result = np.zeros(corpus.num_segments, bool)
    if corpus.num_segments < 3:
        return result
    frames = np.array([a.frame_seconds or 0.0 for a in corpus.about])[video_N]
    limit = np.where(frames > 0, (FLICKER_FRAMES + 0.5) * frames, FLICKER_SECONDS)
    if reading.settings.unit is TimeUnit.SECONDS:
        limit = np.minimum(limit, np.maximum(1.5 * frames, MOST_FLICKER_SECONDS))
    seconds = corpus.stop_N - corpus.start_N
    short = (seconds > 0) & (seconds <= limit) & ~(seconds > FLICKER_SHARE * usual_N)
    inside = (label[:-2] == label[2:]) & (label[1:-1] != label[:-2])
    one_video = video_N[:-2] == video_N[2:]
    touching = (corpus.start_N[1:-1] - corpus.stop_N[:-2] <= limit[1:-1]) & (
        corpus.start_N[2:] - corpus.stop_N[1:-1] <= limit[1:-1]
    )
    result[1:-1] = short[1:-1] & inside & one_video & touching
    return result


def gap_findings(reading: Reading) -> Iterator[Finding]:
    """Unlabelled time between two steps, where the dataset has hardly any."""
    text = reading.length_text
    corpus = reading.corpus
    gap_N = _since_last_stop(corpus)
    gaps = np.flatnonzero(gap_N > _half_frames(corpus))
    neighbours = corpus.num_segments - int((np.diff(corpus.offsets_V) > 0).sum())
    if len(gaps) > max(RARE_STYLE * neighbours, 1):
        return
    video_N = corpus.video_N()
    for n in gaps.tolist():
        seconds = float(gap_N[n])
        yield Finding(
            kind=Kind.GAP,
            **about_place(corpus.about[int(video_N[n])]),
            start_seconds=float(corpus.start_N[n]) - seconds,
            stop_seconds=float(corpus.start_N[n]),
            label=corpus.name(n),
            score=seconds,
            sentence=(
                f"{text(seconds)} without a label before `{corpus.name(n)}`; "
                f"{neighbours - len(gaps)} of {neighbours} steps follow the one before directly."
            ),
            evidence={"seconds": seconds, "gaps": len(gaps), "neighbours": neighbours},
        )


def overlap_findings(reading: Reading) -> Iterator[Finding]:
    """Steps that start before an earlier one ends; told once where that is the dataset's style."""
    text = reading.length_text
    corpus = reading.corpus
    gap_N, video_N = _since_last_stop(corpus), corpus.video_N()
    overlaps = np.flatnonzero(gap_N < -_half_frames(corpus))
    neighbours = corpus.num_segments - int((np.diff(corpus.offsets_V) > 0).sum())
    if len(overlaps) > max(RARE_STYLE * neighbours, 1):
        yield Finding(
            kind=Kind.OVERLAP,
            video=None,
            score=len(overlaps) / neighbours,
            sentence=(
                f"{len(overlaps)} of {neighbours} steps start before the step before them ends; "
                "steps of this dataset overlap, so single places are not told."
            ),
            evidence={"overlaps": len(overlaps), "neighbours": neighbours},
        )
        return
    for n in overlaps.tolist():
        seconds = -float(gap_N[n])
        yield Finding(
            kind=Kind.OVERLAP,
            **about_place(corpus.about[int(video_N[n])]),
            start_seconds=float(corpus.start_N[n]),
            stop_seconds=float(corpus.start_N[n]) + seconds,
            label=corpus.name(n),
            score=seconds,
            sentence=(
                f"`{corpus.name(n)}` starts {text(seconds)} before an earlier step ends; "
                f"{neighbours - len(overlaps)} of {neighbours} steps do not."
            ),
            evidence={"seconds": seconds, "overlaps": len(overlaps), "neighbours": neighbours},
        )


def _half_frames(corpus: Corpus) -> FloatArray:
    """Seconds of each segment's half frame: what rounding to frames makes of steps end to end."""
    frames = np.array([about.frame_seconds or 0.0 for about in corpus.about])[corpus.video_N()]
    half: FloatArray = np.maximum(frames / 2, 1e-3)
    return half


def _since_last_stop(corpus: Corpus) -> FloatArray:
    """Seconds since the latest end of all earlier steps; negative where steps overlap."""
    gap = np.zeros(corpus.num_segments)
    for video in range(corpus.num_files):
        span = corpus.span(video)
        stops = np.maximum.accumulate(corpus.stop_N[span])
        gap[span][1:] = corpus.start_N[span][1:] - stops[:-1]
    return gap


def outside_findings(reading: Reading) -> Iterator[Finding]:
    """Steps before 0 or beyond the end of the video, one finding a video."""
    text = reading.length_text
    corpus = reading.corpus
    for video, about in enumerate(corpus.about):
        span = corpus.span(video)
        tolerance = max(about.frame_seconds or 0.0, 0.1)
        starts, stops = corpus.start_N[span], corpus.stop_N[span]
        end = np.inf if about.seconds is None else about.seconds
        outside = np.flatnonzero((stops > end + tolerance) | (starts < -tolerance))
        if not len(outside):
            continue
        first = int(outside[0])
        late = stops[outside].max() > end + tolerance
        where = (
            f"end at {text(float(stops[outside].max()))}, the video at {text(float(end))}"
            if late
            else f"start at {text(float(starts[outside].min()))}, before the video"
        )
        verb = "lies" if len(outside) == 1 else "lie"
        yield _at(
            corpus,
            span.start + first,
            video,
            kind=Kind.BEYOND_END,
            score=float(max(stops.max() - end, -starts.min())),
            sentence=(
                f"{counted(len(outside), 'step')} {verb} outside of the video: the labels {where}."
            ),
            evidence={"steps": len(outside)},
        )


def empty_findings(reading: Reading) -> Iterator[Finding]:
    """Steps that end when or before they start."""
    text = reading.length_text
    corpus, video_N = reading.corpus, reading.corpus.video_N()
    for n in np.flatnonzero(corpus.stop_N <= corpus.start_N).tolist():
        start, stop = float(corpus.start_N[n]), float(corpus.stop_N[n])
        yield _at(
            corpus,
            n,
            int(video_N[n]),
            kind=Kind.EMPTY,
            score=start - stop,
            sentence=(
                f"`{corpus.name(n)}` starts at {text(start)} and ends at "
                f"{text(stop)}; a step must end after its start."
            ),
            evidence={"start": start, "stop": stop},
        )


def unlabelled_findings(reading: Reading) -> Iterator[Finding]:
    """Videos with far more unlabelled time than the others."""
    corpus = reading.corpus
    share_V = unlabelled_shares(corpus)
    known = np.flatnonzero(~np.isnan(share_V) & corpus.counted_V)
    if len(known) < 5:
        return
    median = float(np.median(share_V[known]))
    spread = 1.4826 * float(np.median(np.abs(share_V[known] - median)))
    limit = median + max(0.2, 5 * spread)
    for video in known[share_V[known] > limit].tolist():
        share = float(share_V[video])
        yield Finding(
            kind=Kind.UNLABELLED,
            **about_place(corpus.about[video]),
            score=share - median,
            sentence=(
                f"{share:.0%} of the video has no label; half of the {len(known)} videos have "
                f"{median:.0%} or less."
            ),
            evidence={"share": share, "median": median, "videos": len(known)},
        )


def unlabelled_shares(corpus: Corpus) -> FloatArray:
    """Share of each video that no step covers; NaN where the length is not known."""
    shares = np.full(corpus.num_files, np.nan)
    gap_N = _since_last_stop(corpus)
    for video, about in enumerate(corpus.about):
        if not about.seconds or about.seconds <= 0:
            continue
        span = corpus.span(video)
        if span.start == span.stop:
            shares[video] = 1.0
            continue
        start = max(float(corpus.start_N[span][0]), 0.0)
        rest = max(about.seconds - corpus.last_second(video), 0.0)
        inside = float(np.maximum(gap_N[span], 0).sum())
        shares[video] = min((start + inside + rest) / about.seconds, 1.0)
    return shares


def _at(
    corpus: Corpus,
    segment: int,
    video: int,
    *,
    kind: Kind,
    score: float,
    sentence: str,
    evidence: dict[str, float | int | str],
) -> Finding:
    return Finding(
        kind=kind,
        **about_place(corpus.about[video]),
        start_seconds=float(corpus.start_N[segment]),
        stop_seconds=float(corpus.stop_N[segment]),
        label=corpus.name(segment),
        score=score,
        sentence=sentence,
        evidence=evidence,
    )
