"""Fill the report's template and write it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from csl_dist.audit.reader import Audit
from csl_dist.errors import DamagedError, NotReadyError
from csl_dist.flag.edits.files import EXCHANGED
from csl_dist.measures import own_score
from csl_dist.report import contents
from csl_dist.report.contents import VideoDetails
from csl_dist.report.drawing import (
    FLAG_COLOUR,
    TRUTH_COLOUR,
    class_colour,
    highest_shown,
    label_ribbon,
    line_chart,
    line_key,
    loss_heatmap,
    palette,
    reliability_chart,
    score_curve,
    span_bar,
    time_axis,
)
from csl_dist.report.exhibits import Exhibits
from csl_dist.report.overview import overview, reviewed
from csl_dist.report.thumbnails import span_pictures
from csl_dist.report.words import (
    KIND_WORDS,
    VIDEO_NOTE,
    VIDEO_WORDS,
    correction_words,
    fix_words,
)
from csl_dist.types import Span, fingerprint
from csl_dist.words import clock

MAX_PICTURED = 60
"""Number of flags, worst first, with pictures of frames."""


def write_report(audit: Audit, *, most: int = contents.MAX_DETAILED) -> str:
    """Writes `report.html` to the folder of an audit's flags and returns its URL."""
    if not audit.revisions:
        raise NotReadyError(f"{audit.paths.root.url} has no audit yet; run `csl audit`")
    newest = audit.revision == max(audit.revisions)
    root = audit.paths.root if newest else audit.paths.audit(audit.revision)
    if newest:
        root.delete(audit.paths.REPORT_RECORD)
    root.put(audit.paths.REPORT, render(audit, most=most).encode())
    if newest and most == contents.MAX_DETAILED:
        root.put_json(audit.paths.REPORT_RECORD, {"made_from": _made_from(audit)})
    return f"{root.url}/{audit.paths.REPORT}"


def current_report(audit: Audit) -> str:
    """The URL of the report of the newest audit, which is written unless it is there already."""
    root, paths = audit.paths.root, audit.paths
    is_there = all(map(root.exists, (paths.REPORT, paths.REPORT_RECORD)))
    if is_there and audit.has_flags:
        with suppress(DamagedError):
            if root.read_json(paths.REPORT_RECORD, dict) == {"made_from": _made_from(audit)}:
                return f"{root.url}/{paths.REPORT}"
    return write_report(audit)


def _made_from(audit: Audit) -> str:
    """Fingerprint of what a report shows; of reviews, of the sizes and times of their files."""
    record, reviews = audit.record, Path(audit.paths.root.url) / audit.paths.REVIEWS
    # What was decided last may not have reached the file itself yet.
    files = [reviews, reviews.with_name(f"{reviews.name}-wal")] if audit.paths.root.is_local else []
    facts = [file.stat() for file in files if file.exists()]
    written = [[fact.st_size, fact.st_mtime_ns] for fact in facts if fact.st_size]
    shown = [record.made_from, record.created, audit.revision, audit.metrics(), written]
    return fingerprint(version("csl_dist"), audit.paths.root.url, shown)


def render(audit: Audit, *, most: int = contents.MAX_DETAILED) -> str:
    """The whole page, with the details of the worst videos."""
    table, flags = audit.videos(), audit.flags()
    shown = contents.detailed_videos(audit, table, most)
    details = [contents.video_details(audit, video, flags) for video in shown]
    losses = contents.checkpoint_losses(audit)
    exhibits = Exhibits(audit)
    found = reviewed(audit)
    ordered = [audit.classes[i] for i in audit.class_order]
    names, frames = contents.confusion(flags, ordered)
    pictured = flags.head(MAX_PICTURED)
    return _template().render(
        title=audit.paths.root.url.rsplit("/", 1)[-1],
        root=audit.paths.root.url,
        record=audit.record,
        settings=audit.settings,
        revision=audit.revision,
        overview=overview(audit),
        reviewed=found,
        reliability=Markup(reliability_chart(found.reliability)) if found else "",
        summary=contents.summary(audit, table, flags),
        rests_on=audit.rests_on,
        exchanged=EXCHANGED,
        exchanges=audit.exchanges(),
        corrections=audit.corrections().to_dict("records"),
        calibration=calibration_sentence(audit),
        classes=[(audit.classes[i], class_colour(i)) for i in audit.class_order],
        metrics=contents.metrics(audit),
        own_score=partial(own_score, audit.settings.deciding),
        flags=flags.head(contents.MAX_FLAGS).to_dict("records"),
        num_flags=len(flags),
        videos=contents.listed_videos(table).to_dict("records"),
        num_videos=len(table),
        video_words=VIDEO_WORDS,
        video_note=VIDEO_NOTE,
        detailed={video.id: i for i, video in enumerate(details)},
        losses=[(name, Markup(line_key(i))) for i, name in enumerate(losses)],
        loss_chart=Markup(line_chart(losses, name="mean loss over checkpoints")),
        confusion=list(zip(names, frames, strict=True)),
        highest=max((count for row in frames for count in row), default=1),
        sections=[_section(audit, video, pictured, exhibits) for video in details],
        figures=_figures(exhibits) if exhibits.has_truth else [],
        palette=palette(),
    )


def _figures(exhibits: Exhibits) -> list[tuple[str, str]]:
    """The paper's figures with their words, as data URIs; none where matplotlib is missing."""
    if not exhibits.compared() or find_spec("matplotlib") is None:
        return []
    from csl_dist.report.figures import bars, data_uri, figure_bytes, maps, trajectories

    drawn: dict[str, Callable[[Exhibits], Any]] = {
        "Right and wrong stretches, by the truth and by each method at its highest scores": bars,
        "Loss of single frames over checkpoints, with the threshold τ": trajectories,
        "Loss of every frame (downwards) under every checkpoint (to the right); wrong ones are "
        "in boxes": partial(maps, most=1),
    }
    return [(words, data_uri(figure_bytes(draw(exhibits)))) for words, draw in drawn.items()]


def _section(
    audit: Audit, video: VideoDetails, pictured: pd.DataFrame, exhibits: Exhibits
) -> dict[str, Any]:
    """The values of the template for one video."""
    own = pictured[pictured.video == video.id]
    pictures = span_pictures(audit, video.id, _spans(own))
    labels_T = audit.annotation(video.id).labels_T
    rows = {
        "labels": label_ribbon(labels_T, audit.classes),
        "models say": label_ribbon(video.predicted_T, audit.classes, height=12),
        "flagged": span_bar(video.flags, video.num_frames, FLAG_COLOUR, name="flagged"),
    }
    if video.known is not None:
        rows["known errors"] = span_bar(
            video.known, video.num_frames, TRUTH_COLOUR, name="known errors"
        )
    curves = {
        "suspicion": (video.score_W, video.threshold),
        # Where flags are changes of the labels, no threshold of CSL decided on anything.
        "CSL, smoothed": (
            video.csl_W,
            exhibits.tau.get(video.id) if audit.record.thresholds else None,
        ),
    }
    for name, (score_W, tau) in curves.items():
        rows[name] = score_curve(score_W, list(video.flags), num_frames=video.num_frames, tau=tau)
    rows["time"] = time_axis(video.times_T)
    shown = {int(label) for label in {*labels_T.tolist(), *video.predicted_T.tolist()}}
    return {
        "id": video.id,
        "classes": [(audit.classes[i], class_colour(i)) for i in audit.class_order if i in shown],
        "num_frames": video.num_frames,
        "num_flags": len(video.flags),
        "rows": {name: Markup(svg) for name, svg in rows.items()},
        "heatmap": loss_heatmap(video.losses.columns_EW),
        "high": highest_shown(video.losses.columns_EW),
        "num_columns": video.losses.columns_EW.shape[1],
        "epochs": video.epochs,
        "chart": Markup(line_chart(video.trajectories, name="loss of chosen frames")),
        "lines": [(name, Markup(line_key(i))) for i, name in enumerate(video.trajectories)],
        "pictures": [
            (flag, pictures[span])
            for flag, span in zip(own.to_dict("records"), _spans(own), strict=True)
            if span in pictures
        ],
    }


def _spans(flags: pd.DataFrame) -> Sequence[Span]:
    return [Span(int(a), int(b)) for a, b in flags[["start", "stop"]].to_numpy()]


def calibration_sentence(audit: Audit) -> str | None:
    """A sentence on how many planted errors the rule finds."""
    calibration = audit.calibration()
    return None if calibration is None else calibration.sentence()


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("csl_dist", "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["fix"] = fix_words
    environment.filters["outcome"] = correction_words
    environment.filters["kind"] = lambda kind: KIND_WORDS.get(kind, kind)
    environment.filters["clock"] = partial(clock, digits=1)
    environment.filters["capitalize_first"] = lambda text: text[:1].upper() + text[1:]
    environment.filters["percent"] = lambda v: f"{100 * v[0]:.1f}" if v else "-"
    environment.filters["number"] = lambda v: "-" if v is None or v != v else f"{v:.2f}"
    return environment.get_template("page.html")
