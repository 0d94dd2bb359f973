"""Fill the report's template from a run's stores and write it."""

from dataclasses import dataclass
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from csl_dist.findings import read_scored, run_thresholds
from csl_dist.layout import RunLayout
from csl_dist.records import Annotation, Span, Split
from csl_dist.reduce import frame_losses
from csl_dist.report.drawing import (
    class_colour,
    label_ribbon,
    loss_heatmap,
    score_curve,
    span_bar,
)
from csl_dist.run import Run
from csl_dist.verdict import read_flags

MAX_DETAILED = 40
"""Videos drawn in full, worst first; all others stand in the index alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoSection:
    """What the template shows of one video."""

    id: str
    num_frames: int
    num_flags: int
    worst: float
    pictures: dict[str, Markup]


def write_report(run: Run) -> str:
    """Writes `report.html` into the run root and returns its URL."""
    run.layout.root.put(RunLayout.REPORT, render(run).encode())
    return f"{run.layout.root.url}/{RunLayout.REPORT}"


def render(run: Run) -> str:
    """The whole page."""
    audit, validation = read_scored(run, Split.AUDIT), read_scored(run, Split.VAL)
    taus = run_thresholds(run, audit, validation)
    scorer, temporal = run.flag_scorer(), run.temporal_scorer()
    flags = read_flags(run.layout)
    truth = run.known_errors() if run.has_known_errors() else None
    # A video without any label has no score, and nothing to draw.
    scored = [a for a in audit.annotations if not np.isnan(audit.scores[scorer][a.video]).all()]
    by_worst = sorted(scored, key=lambda a: -float(np.nanmax(audit.scores[scorer][a.video])))
    spans_of = {
        a.video: [
            Span(int(start), int(stop))
            for start, stop in flags.loc[flags.video == a.video, ["start", "stop"]].to_numpy()
        ]
        for a in audit.annotations
    }
    sections = []
    for rank, annotation in enumerate(by_worst):
        video = annotation.video
        score_T = audit.scores[scorer][video]
        pictures = {}
        if rank < MAX_DETAILED:
            pictures = {
                "label": Markup(label_ribbon(annotation.labels_T, run.dataset.classes)),
                "curve": Markup(score_curve(score_T, taus[video], spans_of[video])),
                "flags": Markup(span_bar(spans_of[video], annotation.num_frames, "#D55E00")),
                "heatmap": Markup(_heatmap(run, temporal, annotation)),
            }
            if truth is not None:
                known = [error.span for error in truth if error.video == video]
                pictures["truth"] = Markup(span_bar(known, annotation.num_frames, "#0072B2"))
        sections.append(
            VideoSection(
                id=video,
                num_frames=annotation.num_frames,
                num_flags=len(spans_of[video]),
                worst=float(np.nanmax(score_T)),
                pictures=pictures,
            )
        )
    return _template().render(
        title=run.config.root.rstrip("/").rsplit("/", 1)[-1],
        root=run.config.root,
        summary=_summary(run, audit.annotations, flags),
        classes=[(name, class_colour(i)) for i, name in enumerate(run.dataset.classes)],
        metrics=_metrics(run),
        flags=flags.to_dict("records"),
        score=run.config.flag.score,
        scorer=scorer,
        sections=sections,
    )


def _summary(run: Run, annotations: list[Annotation], flags: Any) -> list[tuple[str, str]]:
    num_frames = sum(a.num_frames for a in annotations)
    num_flagged = int((flags.stop - flags.start).sum())
    epochs = [len(run.checkpoints(scorer, 0)) for scorer in run.config.scorers]
    return [
        ("videos audited", f"{len(annotations):,}"),
        ("frames audited", f"{num_frames:,}"),
        ("checkpoints per scorer", f"{max(epochs):,}"),
        ("flagged spans", f"{len(flags):,}"),
        ("frames to review", f"{num_flagged:,} ({num_flagged / max(1, num_frames):.1%})"),
    ]


def _metrics(run: Run) -> dict[str, Any] | None:
    """`metrics.json` by scorer, where known errors made one."""
    if not run.layout.root.exists(RunLayout.METRICS):
        return None
    scorers: dict[str, Any] = run.layout.root.read_json(RunLayout.METRICS)["scorers"]
    return scorers if any(scorers.values()) else None


def _heatmap(run: Run, scorer: str, annotation: Annotation) -> str:
    trajectory = run.trajectories(scorer).trajectory(annotation.video)
    weights_C = np.ones(len(run.dataset.classes))
    losses_ET = frame_losses(trajectory.read(), annotation.labels_T, weights_C)
    picture = loss_heatmap(losses_ET)
    return f'<img class="heatmap" alt="loss by checkpoint and frame" src="{picture}">'


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("csl_dist", "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = lambda v: f"{100 * v[0]:.1f}" if v else "-"
    return environment.get_template("page.html")
