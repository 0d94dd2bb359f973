"""DecidingScores: the scores behind an audit's flags, under its own labels or others.

No model runs for other labels: what they change is read from trajectories.
"""

from functools import cached_property

import numpy as np

from csl_dist.audit.frames import FrameScores
from csl_dist.audit.revision import AuditStore
from csl_dist.audit.stored import StoredVideos
from csl_dist.errors import DataError
from csl_dist.flag.calibration import AnyCalibration
from csl_dist.flag.edit_calibration import EditCalibration
from csl_dist.flag.edit_rule import read_families
from csl_dist.flag.record import AuditRecord
from csl_dist.measures import DECIDING, FRAME_SCORES, SUSPICION
from csl_dist.score.ensemble import Scale, ensemble_score
from csl_dist.types import FloatArray, IntArray


class DecidingScores:
    """Scores (T,) of the videos of one audit; NaN on frames without a label."""

    def __init__(
        self, audits: AuditStore, revision: int, record: AuditRecord, stored: StoredVideos
    ):
        self._audits = audits
        self._revision = revision
        self._record = record
        self._stored = stored

    def __repr__(self) -> str:
        return f"DecidingScores({self._record.settings.deciding}, revision {self._revision})"

    @cached_property
    def calibration(self) -> AnyCalibration:
        return self._audits.calibration(self._revision)

    @cached_property
    def _frames(self) -> FrameScores:
        return self._audits.frame_scores(self._revision)

    def by_name(self, video: str) -> dict[str, FloatArray]:
        """All of a video's; by the rule `edits` none of a validation video."""
        if not self._record.settings.has_frame_scores:
            return {DECIDING: self.score(video)}
        if not self.is_known(video):
            return {}
        return {name: self._frames.read(video, name) for name in FRAME_SCORES}

    def is_known(self, video: str) -> bool:
        """Whether a video has such scores; by the rule `edits` a validation video has none."""
        return not self._record.settings.has_frame_scores or video in self._frames

    def score(self, video: str, given_T: IntArray | None = None) -> FloatArray:
        """`suspicion`, or what is compared with a threshold."""
        settings, scales = self._record.settings, self._record.scales
        if settings.has_frame_scores:
            return self.frame_score(video, SUSPICION, given_T)
        name, read = settings.flag.score, self._stored.named_score
        if scales is None or settings.framewise is None:
            return read(video, settings.scorer, name, given_T)
        temporal, framewise = (Scale(mean=m, deviation=d) for m, d in scales)
        return ensemble_score(
            read(video, settings.temporal, name, given_T),
            read(video, settings.framewise, name, given_T),
            (temporal, framewise),
        )

    def frame_score(self, video: str, name: str, given_T: IntArray | None = None) -> FloatArray:
        """One of FRAME_SCORES, which only videos to audit have, and only by the rule `edits`."""
        if not self._record.settings.has_frame_scores:
            rule = self._record.settings.flag.rule
            raise DataError(f"the audit's rule is {rule}; only audits by `edits` have {name!r}")
        if not self.is_known(video):
            raise DataError(f"video {video!r} is not one to audit, so that it has no {name!r}")
        score_T = self._frames.read(video, name)
        if given_T is None:
            return score_T
        if name != SUSPICION:
            raise DataError(f"{name!r} is known for the audit's own labels alone; `csl relabel`")
        return self._suspicion_under(video, score_T, given_T)

    def _suspicion_under(
        self, video: str, suspicion_T: FloatArray, given_T: IntArray
    ) -> FloatArray:
        calibration = self.calibration
        assert isinstance(calibration, EditCalibration), "every audit by this rule has one"
        labels_T = self._stored.annotated(video, self._record.settings.temporal)[0].labels_T
        families = read_families(
            video, calibration.families, lambda s, v: self._stored.trajectory(v, s)
        )
        preferred_T = calibration.preference_of(families, given_T)
        result_T = suspicion_T.copy()
        changed = np.flatnonzero(given_T != labels_T)
        result_T[changed] = np.where(given_T < 0, np.nan, preferred_T)[changed]
        return result_T
