"""AuditSettings: whose scores decide, and how scores and flags are made of trajectories."""

from dataclasses import dataclass

from csl_dist.config import COMMITTEE, ENSEMBLE, FlagConfig, ScoreConfig
from csl_dist.measures import SUSPICION


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """All that an audit decides by; kept with it, so that later settings do not touch it."""

    scorers: tuple[str, ...]
    scorer: str
    """Whose score decides on flags: a scorer, `ensemble`, or `committee` by the rule `edits`."""
    temporal: str
    """The scorer that explains flags."""
    framewise: str | None
    """The scorer that sees single frames only, if the run has one."""
    score: ScoreConfig
    flag: FlagConfig

    @property
    def deciding(self) -> str:
        """Name of the score of frames that goes with the flags."""
        return SUSPICION if self.has_frame_scores else self.flag.score

    @property
    def has_frame_scores(self) -> bool:
        """Whether the audit has scores of frames by all scorers together, as the rule `edits` gives
        them; the first audits by that rule have none."""
        return self.scorer == COMMITTEE

    @property
    def has_ensemble(self) -> bool:
        """Whether there are both a scorer that sees context and one that does not."""
        return self.framewise not in (None, self.temporal)

    @property
    def uses_ensemble(self) -> bool:
        return self.scorer == ENSEMBLE and self.framewise is not None
