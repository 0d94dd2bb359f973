"""EditCalibration: what the rule `edits` learnt of planted errors, and what its flags promise."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from csl_dist.flag.edit_reviews import ReviewedSpan, Verdict, verdicts_from_json
from csl_dist.flag.edits.emission import LateView, Preference, emission_of
from csl_dist.flag.edits.evidence import COLUMNS
from csl_dist.flag.edits.findings import NO_EDIT, PREFERENCE_WEIGHT
from csl_dist.flag.edits.fitting import Learnt
from csl_dist.flag.edits.lists import LIST_OF, ListName
from csl_dist.flag.edits.probability import SHIPPED, EditModel, expected_right
from csl_dist.types import EditKind, Flag, FloatArray, IntArray
from csl_dist.words import counted

BY_HIGH_FINDINGS = "by how many findings score high"
SHOWN = 20
"""Flags that the promise is about: what a reviewer looks at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """How many of the surest flags are right, and what it takes to find the wrong steps."""

    flags: int
    right: float
    low: float
    """With `high`, bounds that hold four times in five."""
    high: float
    expected_errors: float
    """Wrong steps in all that was audited, flagged or not."""
    budgets: tuple[tuple[float, float], ...]
    """Minutes of flagged footage, surest first, and the share of the wrong steps that they hold:
    for half of what all flags of steps find, and for all."""
    by_list: dict[ListName, int] | None
    """How many of the surest flags are of each list; None by an earlier rule, whose promise is
    about steps alone."""
    errors_known_by: str
    """How it is known how many steps are wrong."""

    @classmethod
    def of(
        cls,
        flags: Sequence[Flag],
        deviations: Mapping[ListName, float],
        *,
        expected_errors: float,
        errors_known_by: str,
    ) -> "Promise":
        """From flags with their probabilities, and how many steps are wrong, flagged or not.

        `deviations`: by how much the log-odds of a list may be off together.
        """
        surest = sorted(flags, key=lambda flag: -(flag.probability or 0.0))
        first = surest[:SHOWN]
        right, low, high = expected_right(
            (_probabilities(first, name), deviation) for name, deviation in deviations.items()
        )
        steps = [flag for flag in surest if flag.list == ListName.STEPS]
        minutes_N = np.cumsum([f.stop_seconds - f.start_seconds for f in steps]) / 60
        found_N = _probabilities(steps, ListName.STEPS).cumsum()
        half = int((found_N >= found_N[-1] / 2).argmax()) if steps else 0
        counts = Counter(flag.list for flag in first)
        return cls(
            flags=len(first),
            right=right,
            low=low,
            high=high,
            expected_errors=expected_errors,
            budgets=tuple(
                (float(minutes_N[i]), float(found_N[i]) / expected_errors)
                for i in (sorted({half, len(steps) - 1}) if steps else [])
            ),
            by_list={name: counts[name] for name in ListName if counts[name]},
            errors_known_by=errors_known_by,
        )

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Promise":
        values = dict(data)
        # Until the rule's third version steps alone had a promise.
        values.pop("other_flags", None)
        by_list = values.get("by_list")
        values["by_list"] = by_list and {ListName(name): n for name, n in by_list.items()}
        values.setdefault("errors_known_by", BY_HIGH_FINDINGS)
        values["budgets"] = tuple((minutes, share) for minutes, share in values["budgets"])
        return cls(**values)

    @property
    def about(self) -> str:
        """The flags that it is about, in words."""
        if self.by_list is None:
            return "of steps"
        return f"({', '.join(f'{name} {count}' for name, count in self.by_list.items())})"

    @property
    def nothing(self) -> str:
        """What no flag is of, where there is none."""
        return "no step" if self.by_list is None else "nothing"


def _probabilities(flags: Sequence[Flag], name: ListName) -> FloatArray:
    """Of the flags of a list (N,)."""
    return np.array([flag.probability for flag in flags if flag.list == name], dtype=float)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditCalibration:
    """What was fitted on errors planted in held-out videos; with flags, what these promise."""

    families: tuple[str, ...]
    """The scorers of the committee."""
    learnt: Learnt
    reviews: dict[ReviewedSpan, Verdict] = field(default_factory=dict)
    """What reviewers say of spans."""
    promise: Promise | None = None
    """None until the rule has been applied."""

    def preference_of(self, families: Sequence[LateView], labels_T: IntArray) -> FloatArray:
        """The part of suspicion (T,) that models alone decide: of frames that no edit covers."""
        emission = emission_of(families, self.learnt.temperatures)
        preferred_T = self.learnt.preference.of(emission.logp_TC, labels_T)
        score_T: FloatArray = NO_EDIT + PREFERENCE_WEIGHT * preferred_T
        return score_T

    def as_json(self) -> dict[str, Any]:
        models = {
            kind: {
                "offset": model.offset,
                "weights": dict(zip(COLUMNS, model.weights_K.tolist(), strict=True)),
            }
            for kind, model in self.learnt.models.items()
        }
        return {
            "rule": "edits",
            "temperatures": dict(zip(self.families, self.learnt.temperatures, strict=True)),
            "models": models,
            "preference": asdict(self.learnt.preference),
            "planted_in": self.learnt.num_videos,
            "planted_errors": self.learnt.num_errors,
            "reviews": [[*span, asdict(self.reviews[span])] for span in sorted(self.reviews)],
            "promise": self.promise and asdict(self.promise),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "EditCalibration":
        models = {
            EditKind(kind): EditModel(
                offset=model["offset"],
                weights_K=np.array([model["weights"][name] for name in COLUMNS]),
            )
            # Earlier versions of the rule fitted others, too, which no curve knows.
            if LIST_OF[EditKind(kind)] is ListName.STEPS
            else SHIPPED[EditKind(kind)]
            for kind, model in data["models"].items()
        }
        return cls(
            families=tuple(data["temperatures"]),
            learnt=Learnt(
                temperatures=tuple(data["temperatures"].values()),
                models=models,
                preference=Preference(**data["preference"]),
                num_videos=data["planted_in"],
                num_errors=data["planted_errors"],
            ),
            reviews=verdicts_from_json(data["reviews"]),
            promise=data["promise"] and Promise.from_json(data["promise"]),
        )

    def sentence(self) -> str:
        how = (
            f"fitted on {self.learnt.num_errors} errors planted in {self.learnt.num_videos} videos"
        )
        if self.reviews:
            num = len(self.reviews)
            how += f", {counted(num, 'span')} {'was' if num == 1 else 'were'} reviewed"
        promise = self.promise
        if promise is None:
            return how
        if promise.flags == 0:
            return f"{promise.nothing} is likelier wrong than right ({how})"
        right = (
            f"the one flag {promise.about} is right with a probability of {promise.right:.0%}"
            if promise.flags == 1
            else f"of the first {promise.flags} flags {promise.about} about {round(promise.low)} "
            f"to {round(promise.high)} are right"
        )
        if not promise.budgets:
            return f"{right} ({how})"
        budgets = " and ".join(
            f"{_length(minutes)} of flags finds {share:.0%}" for minutes, share in promise.budgets
        )
        num = round(promise.expected_errors)
        verb = "is" if num == 1 else "are"
        return (
            f"{right}; about {counted(num, 'step')} {verb} wrong in all, "
            f"{promise.errors_known_by}: watching the surest {budgets} of them ({how})"
        )


def _length(minutes: float) -> str:
    return f"{60 * minutes:.0f} seconds" if minutes < 2 else f"{minutes:.0f} minutes"
