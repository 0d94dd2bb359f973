"""Findings about files: the same labels twice, and labels that fit another video's length."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from csl_dist.lint.corpus import MIN_STEPS, About, Corpus
from csl_dist.lint.findings import Finding, Kind, TimeUnit
from csl_dist.lint.reading import Reading, about_place
from csl_dist.lint.statistics.copies import copied_runs
from csl_dist.words import counted

MANY_COPIES = 5
"""So many sets of files that are the same are told once, with an example."""
USUAL_FIT = 0.8
"""Share of videos whose labels must end with the video before a misfit means anything."""


def same_labels(corpus: Corpus) -> list[list[int]]:
    """Sets of files with the same steps at the same times."""
    sets: dict[bytes, list[int]] = defaultdict(list)
    for video in range(corpus.num_files):
        span = corpus.span(video)
        if span.stop - span.start >= MIN_STEPS:
            columns = (corpus.label_N[span], corpus.start_N[span], corpus.stop_N[span])
            sets[hashlib.sha256(b"".join(c.tobytes() for c in columns)).digest()].append(video)
    return [videos for videos in sets.values() if len(videos) > 1]


def duplicate_findings(reading: Reading) -> Iterator[Finding]:
    """Files that are the same; told once where they are many, or within a group: cameras."""
    corpus = reading.corpus
    sets = same_labels(corpus)
    within = [videos for videos in sets if _one_group([corpus.about[v] for v in videos])]
    across = [videos for videos in sets if videos not in within]
    if len(across) >= MANY_COPIES:
        within, across = [*across, *within], []
    for videos in across:
        about = [corpus.about[video] for video in videos]
        files = ", ".join(sorted({_short(a) for a in about}))
        steps = int(np.diff(corpus.offsets_V)[videos[0]])
        yield Finding(
            kind=Kind.DUPLICATE,
            **about_place(about[0]),
            score=steps,
            sentence=f"{len(videos)} files have the same {steps} steps at the same times: {files}.",
            evidence={"files": len(videos), "steps": steps},
        )
    if within:
        first = sorted(corpus.about[video].video for video in within[0])
        yield Finding(
            kind=Kind.DUPLICATE,
            video=None,
            score=0.0,
            sentence=(
                f"{sum(map(len, within))} files have only {counted(len(within), 'different set')} "
                "of labels; the same are, for example, "
                f"{' and '.join(first[:2])}. Several cameras of one "
                "performance look like this."
            ),
            evidence={
                "files": sum(map(len, within)),
                "sets": len(within),
                "copies": "; ".join(
                    " = ".join(_short(corpus.about[video]) for video in videos) for videos in within
                ),
            },
        )


def copied_findings(reading: Reading) -> Iterator[Finding]:
    """Files that share a run of steps to the frame with another person's, and are not the same."""
    corpus = reading.corpus
    same = {v: number for number, videos in enumerate(same_labels(corpus)) for v in videos}
    runs = [
        run
        for run in copied_runs(corpus)
        if not _one_group([corpus.about[v] for v in run.videos])
        and len({same.get(v, -1 - v) for v in run.videos}) == 2
    ]
    pairs = {tuple(sorted(corpus.unit_V[v] for v in run.videos)) for run in runs}
    if len(pairs) >= MANY_COPIES:
        example = " and ".join(corpus.about[v].video for v in runs[0].videos)
        yield Finding(
            kind=Kind.DUPLICATE,
            video=None,
            score=len(pairs),
            sentence=(
                f"{len(runs)} pairs of files share steps that begin and end at the same times, for "
                f"example {example}. Cameras of one performance look like this, where groups are "
                "not told; so do labels that were made from a template."
            ),
            evidence={"pairs": len(runs)},
        )
        return
    for run in runs:
        first, second = (corpus.about[v] for v in run.videos)
        apart = f"at most {reading.length_text(run.apart)} apart" if run.apart else "to the frame"
        yield Finding(
            kind=Kind.DUPLICATE,
            **about_place(first),
            start_seconds=float(corpus.start_N[run.first]),
            stop_seconds=float(corpus.stop_N[run.first + run.num_steps - 1]),
            score=run.surprise,
            sentence=(
                f"{run.num_steps} steps in a row begin and end when they do in {_short(second)}, "
                f"{apart}; one may be a copy of the other."
            ),
            evidence={"other": second.video, "steps": run.num_steps, "apart": run.apart},
        )


def _one_group(about: list[About]) -> bool:
    return about[0].group is not None and len({(a.group, a.procedure) for a in about}) == 1


def _short(about: About) -> str:
    """A file's name, or the video where one file holds them all."""
    name = Path(about.file).name
    return name if about.video in name else about.video


def mixed_up_findings(reading: Reading) -> Iterator[Finding]:
    """Labels that do not end with their own video, but exactly with another one."""
    corpus = reading.corpus
    lengths = {v: a.seconds for v, a in enumerate(corpus.about) if a.seconds is not None}
    ends = {v: _end(corpus, v) for v in lengths if corpus.offsets_V[v] < corpus.offsets_V[v + 1]}
    wrong = [v for v in ends if abs(ends[v] - lengths[v]) > _tolerance(corpus, v)]
    if not wrong or len(wrong) > (1 - USUAL_FIT) * len(ends):
        return
    for video in wrong:
        fitting = [
            other
            for other in wrong
            if other != video and abs(ends[video] - lengths[other]) <= _tolerance(corpus, other)
        ]
        if not fitting:
            continue
        other = fitting[0]
        names = [corpus.about[v].video for v in (video, other)]
        yield Finding(
            kind=Kind.MIXED_UP,
            **about_place(corpus.about[video]),
            score=abs(ends[video] - lengths[video]),
            sentence=(
                f"The labels end at {_exact(reading, ends[video])}, the video at "
                f"{_exact(reading, lengths[video])}; they fit {names[1]}, whose own labels do not "
                f"fit it. {len(ends) - len(wrong)} of {len(ends)} label files end with their video."
            ),
            evidence={"other": names[1], "end": ends[video], "seconds": lengths[video]},
        )


def _end(corpus: Corpus, video: int) -> float:
    """Where labels end: with the last step, or later, with entries that say there is none."""
    told = corpus.about[video].end_seconds
    return corpus.last_second(video) if told is None else told


def _exact(reading: Reading, seconds: float) -> str:
    """A place to a tenth of a second, since files differ by little."""
    if reading.settings.unit is TimeUnit.ENTRIES:
        return reading.length_text(seconds)
    return f"{seconds:.1f} s"


def _tolerance(corpus: Corpus, video: int) -> float:
    """Two frames; a tenth of a second where frames are not known."""
    frame = corpus.about[video].frame_seconds
    return 2 * frame if frame else 0.1
