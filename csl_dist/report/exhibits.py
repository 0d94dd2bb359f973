"""What the paper's figures show of an audit: which videos, which threshold, which frames.

Everything is of the paper's score, the smoothed CSL of the temporal scorer, whatever decides on
flags. Where no errors are known, flags stand in for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from csl_dist.audit.reader import Audit
from csl_dist.evaluate.brought import BroughtScores
from csl_dist.measures import PAPERS_SCORE
from csl_dist.types import BoolArray, FloatArray, Span, Split

CLEAN = "clean"
TOP_PERCENT = 10.0
"""Frames that count as detected, for every method alike, where the audit's own rule is another."""
MAX_VIDEOS = 3
"""Of each kind."""
MAX_COMPARED = 6
"""Videos whose bars are drawn."""
FRAMES_OF_A_GROUP = 5
"""Frames of a video, wrong and right ones, whose trajectories are drawn."""


@dataclass(frozen=True)
class Exhibits:
    """What there is to draw; `brought` are frame scores of other methods."""

    audit: Audit
    brought: BroughtScores = field(default_factory=dict)

    @cached_property
    def videos(self) -> list[str]:
        """Audited videos that have a score."""
        split = {video.id: video.split for video in self.audit.held_out_videos()}
        table = self.audit.videos()
        return sorted(v for v in table[table.worst.notna()].video if split[v] is Split.AUDIT)

    @cached_property
    def wrong(self) -> dict[str, dict[Span, str]]:
        """Known errors of each video with their kind; flags where none are known."""
        found: dict[str, dict[Span, str]] = {video: {} for video in self.videos}
        if self.has_truth:
            for error in self.audit.known_errors:
                if error.video in found:
                    found[error.video][error.span] = error.kind.value
            return found
        for flag in self.audit.flags().itertuples():
            if flag.video in found:
                found[str(flag.video)][Span(int(flag.start), int(flag.stop))] = str(flag.kind)  # type: ignore[arg-type]
        return found

    @property
    def has_truth(self) -> bool:
        return bool(self.audit.known_errors)

    @property
    def truth_name(self) -> str:
        return "known errors" if self.has_truth else "flagged"

    def score(self, video: str) -> FloatArray:
        """Smoothed CSL (T,)."""
        return self.audit.score(video, PAPERS_SCORE)

    @cached_property
    def tau(self) -> dict[str, float]:
        """The threshold of the smoothed CSL in each video: the audit's own, or a percentile."""
        flag = self.audit.settings.flag
        own = self.audit.record.thresholds
        is_own = flag.score == PAPERS_SCORE and self.audit.settings.scorer == self.audit.scorer
        if is_own and all(video in own for video in self.videos):
            return {video: own[video] for video in self.videos}
        return dict.fromkeys(self.videos, top_threshold(self._all(PAPERS_SCORE)))

    @cached_property
    def kinds(self) -> dict[str, list[str]]:
        """The first MAX_VIDEOS videos of each kind, `clean` ones first; none is picked out."""
        groups: dict[str, list[str]] = {CLEAN: []}
        for video in self.videos:
            kinds = set(self.wrong[video].values())
            # A video with errors of several kinds would show a mixture.
            if len(kinds) <= 1:
                groups.setdefault(next(iter(kinds), CLEAN), []).append(video)
        if not groups[CLEAN]:
            # As in the paper's protocol, where every audited video has an error.
            groups[CLEAN] = [v.id for v in self.audit.held_out_videos() if v.split is Split.VAL]
        return {kind: own[:MAX_VIDEOS] for kind, own in groups.items() if own}

    def wrong_mask(self, video: str) -> BoolArray:
        """True (T,) inside what is known to be wrong, or flagged."""
        mask_T = np.zeros(self.audit.annotation(video).num_frames, dtype=bool)
        for span in self.wrong.get(video, {}):
            mask_T[span.start : span.stop] = True
        return mask_T

    def compared(self) -> list[str]:
        """Videos whose bars are drawn: some of each kind in turn."""
        wrong = [own for kind, own in self.kinds.items() if kind != CLEAN]
        turns = [own[place] for place in range(MAX_VIDEOS) for own in wrong if place < len(own)]
        return turns[:MAX_COMPARED]

    @cached_property
    def methods(self) -> dict[str, dict[str, BoolArray]]:
        """Detected frames (T,) of every method, by video: its highest scores of all frames."""
        scores: dict[str, Mapping[str, FloatArray]] = {"final epoch": self._all("final_smoothed")}
        scores |= self.brought
        detected = {
            name: {v: by_video[v] > top_threshold(by_video) for v in self.videos}
            for name, by_video in scores.items()
        }
        return detected | {"CSL": {v: self.score(v) > self.tau[v] for v in self.videos}}

    def chosen_frames(self, video: str) -> tuple[list[int], list[int]]:
        """Frames to draw trajectories of: spread over the wrong ones, and over the others."""
        known_T = ~np.isnan(self.score(video))
        wrong_T = self.wrong_mask(video)
        return _spread(wrong_T & known_T), _spread(~wrong_T & known_T)

    def _all(self, name: str) -> dict[str, FloatArray]:
        return {video: self.audit.score(video, name) for video in self.videos}


def top_threshold(scores: Mapping[str, FloatArray], percent: float = TOP_PERCENT) -> float:
    """What all but the highest percent of the frames of all videos lie below."""
    pooled = np.concatenate([np.empty(0), *scores.values()])
    known = pooled[~np.isnan(pooled)]
    return float(np.quantile(known, 1 - percent / 100)) if len(known) else 0.0


def _spread(mask_T: BoolArray) -> list[int]:
    places = np.flatnonzero(mask_T)
    if not len(places):
        return []
    # The middles of equal parts: boundaries are the least typical frames.
    shares = (np.arange(FRAMES_OF_A_GROUP) + 0.5) / FRAMES_OF_A_GROUP
    return sorted({int(places[int(share * len(places))]) for share in shares})
