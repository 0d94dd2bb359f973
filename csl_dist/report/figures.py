"""The paper's figures of an audit, as PNG and PDF.

For each of the worst videos: its labels, known errors and flags as bars, the score over time, and
the loss of every frame under every checkpoint. For the run: the mean loss over checkpoints, and
the trajectories of flagged frames next to usual ones.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from csl_dist.audit.reader import Audit
from csl_dist.errors import ConfigError
from csl_dist.report import contents
from csl_dist.report.contents import VideoDetails
from csl_dist.report.drawing import FLAG_COLOUR, TRUTH_COLOUR, class_colour, highest_shown
from csl_dist.storage.url import key_part
from csl_dist.types import FloatArray, Span, runs_of

MAX_VIDEOS = 6
DPI = 200
DASHES = ("-", "--", ":", "-.")


def write_figures(audit: Audit, folder: Path) -> str:
    """Writes every figure as PNG and PDF; returns how many there are."""
    flags = audit.flags()
    shown = contents.detailed_videos(audit, audit.videos(), MAX_VIDEOS)
    details = [contents.video_details(audit, video, flags) for video in shown]
    figures = {f"video-{key_part(video.id)}": video_figure(audit, video) for video in details}
    figures["losses"] = lines_figure(contents.checkpoint_losses(audit, details), "mean loss")
    if details:
        figures["trajectories"] = lines_figure(details[0].trajectories, "loss")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        output = audit.output_folder(folder)
        for name, figure in figures.items():
            figure.savefig(output.file(f"{name}.png"), dpi=DPI)
            figure.savefig(output.file(f"{name}.pdf"))
    except OSError as error:
        raise ConfigError(f"can't write figures to {folder}: {error.strerror}") from error
    return f"{len(figures)} figures"


def video_figure(audit: Audit, video: VideoDetails) -> Figure:
    """Bars, curve and heatmap of one video over the same frames."""
    labels_T = audit.annotation(video.id).labels_T
    bars = {"labels": {s: class_colour(int(labels_T[s.start])) for s in runs_of(labels_T)}}
    if video.known is not None:
        bars["known errors"] = dict.fromkeys(video.known, TRUTH_COLOUR)
    bars["flagged"] = dict.fromkeys(video.flags, FLAG_COLOUR)
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    heights = [0.5] * len(bars) + [2.2, 2.2]
    *rows, curve, heatmap = figure.subplots(
        len(heights), 1, sharex=True, gridspec_kw={"height_ratios": heights}
    )
    for axes, (name, colours) in zip(rows, bars.items(), strict=True):
        _bar(axes, colours)
        axes.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
        axes.set_yticks([])
    places_W = (np.arange(len(video.score_W)) + 0.5) * video.num_frames / len(video.score_W)
    curve.plot(places_W, video.score_W, color="#222222", linewidth=1)
    if video.threshold is not None:
        curve.axhline(video.threshold, color=FLAG_COLOUR, linestyle="--", linewidth=1)
    for span in video.flags:
        curve.axvspan(span.start, span.stop, color=FLAG_COLOUR, alpha=0.18, linewidth=0)
    curve.set_ylabel(audit.settings.flag.score, fontsize=8)
    picture = heatmap.imshow(
        video.losses.columns_EW,
        aspect="auto",
        cmap="cividis",
        interpolation="nearest",
        vmin=0,
        vmax=highest_shown(video.losses.columns_EW),
        extent=(0, video.num_frames, len(video.epochs) + 0.5, 0.5),
    )
    heatmap.set_ylabel("checkpoint", fontsize=8)
    heatmap.set_xlabel("frame", fontsize=8)
    figure.colorbar(picture, ax=heatmap, label="loss")
    rows[0].set_title(video.id, fontsize=9)
    return figure


def lines_figure(lines: Mapping[str, FloatArray], name: str) -> Figure:
    """Lines over checkpoints."""
    figure = Figure(figsize=(4.6, 3.0), layout="constrained")
    axes = figure.subplots()
    for number, (label, values) in enumerate(lines.items()):
        axes.plot(
            np.arange(1, len(values) + 1),
            values,
            DASHES[number % len(DASHES)],
            color=class_colour(number),
            label=label,
        )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("checkpoint")
    axes.set_ylabel(name)
    axes.set_ylim(bottom=0)
    if lines:
        axes.legend(fontsize=7, frameon=False)
    return figure


def _bar(axes: Axes, colours: Mapping[Span, str]) -> None:
    for span, colour in colours.items():
        axes.axvspan(span.start, span.stop, color=colour, linewidth=0)
