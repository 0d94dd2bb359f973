"""The paper's figures of an audit, as PNG and PDF.

| file | what it shows |
|---|---|
| overview-VIDEO | frames above the CSL over time, threshold, wrong regions |
| bars | right and wrong stretches by the truth and by each method, some videos |
| trajectories | loss of single frames over checkpoints, wrong and right ones, threshold |
| maps | loss of every frame under every checkpoint: clean, mislabelled, disordered |
| maps-more | the same of several videos of each kind |
| losses | mean loss over checkpoints of training and of held-out videos |
"""

import base64
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from csl_dist.audit.reader import Audit
from csl_dist.data.media.display import Pixels
from csl_dist.errors import ConfigError
from csl_dist.evaluate.brought import BroughtScores
from csl_dist.report import contents
from csl_dist.report.drawing import class_colour, highest_shown
from csl_dist.report.exhibits import CLEAN, Exhibits
from csl_dist.report.shrink import shrunk_losses
from csl_dist.report.thumbnails import frame_pictures
from csl_dist.storage.url import key_part
from csl_dist.types import UNLABELLED, BoolArray, FloatArray, IntArray, runs_of, spans_where

DPI = 200
PAGE_DPI = 80
STRIP_FRAMES = 8
MAP_ROWS = 400
"""Rows of a map; a row is the mean of as many frames as it takes."""
RIGHT_COLOUR, WRONG_COLOUR = "#009E73", "#D55E00"
"""Green and red that colour-blind readers can tell apart."""
DASHES = ("-", "--", ":", "-.")


def write_figures(audit: Audit, folder: Path, brought: BroughtScores | None = None) -> str:
    """Writes every figure as PNG and PDF; returns how many there are."""
    count = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        output = audit.output_folder(folder)
        for name, figure in paper_figures(audit, brought):
            figure.savefig(output.file(f"{name}.png"), dpi=DPI)
            figure.savefig(output.file(f"{name}.pdf"))
            count += 1
    except OSError as error:
        raise ConfigError(f"can't write figures to {folder}: {error.strerror}") from error
    return f"{count} figures"


def figure_bytes(figure: Figure) -> bytes:
    """A small PNG, for a page."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=PAGE_DPI)
    return buffer.getvalue()


def data_uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()


def paper_figures(
    audit: Audit, brought: BroughtScores | None = None
) -> Iterator[tuple[str, Figure]]:
    """Every figure that there is something to draw of, by name."""
    exhibits = Exhibits(audit, brought or {})
    for kind, videos in exhibits.kinds.items():
        if kind != CLEAN:
            yield f"overview-{key_part(videos[0])}", overview(exhibits, videos[0])
    if exhibits.compared():
        yield "bars", bars(exhibits)
        yield "trajectories", trajectories(exhibits)
    yield "maps", maps(exhibits, most=1)
    if any(len(videos) > 1 for videos in exhibits.kinds.values()):
        yield "maps-more", maps(exhibits, most=3)
    yield "losses", lines_figure(contents.checkpoint_losses(audit), "mean loss")


def overview(exhibits: Exhibits, video: str) -> Figure:
    """Frames of a video above its CSL over time, with the threshold and what is wrong."""
    audit = exhibits.audit
    annotation = audit.annotation(video)
    num_frames = annotation.num_frames
    shown = ((np.arange(STRIP_FRAMES) + 0.5) / STRIP_FRAMES * num_frames).astype(int)
    pictures = frame_pictures(audit, video, shown)
    rows = {"strip": 1.0} if pictures else {}
    rows |= {"labels": 0.22, "curve": 1.8}
    figure = Figure(figsize=(7.2, 0.6 + 1.1 * sum(rows.values())), layout="constrained")
    grid = figure.add_gridspec(len(rows), 1, height_ratios=list(rows.values()), hspace=0.02)
    axes = {name: figure.add_subplot(grid[place]) for place, name in enumerate(rows)}
    if pictures:
        _strip(axes["strip"], pictures, num_frames)
    _bar(axes["labels"], annotation.labels_T)
    axes["labels"].set_ylabel("labels", rotation=0, ha="right", va="center", fontsize=8)
    curve, score_T = axes["curve"], exhibits.score(video)
    curve.plot(np.arange(num_frames), score_T, color="#222222", linewidth=0.9)
    for number, span in enumerate(exhibits.wrong[video]):
        name = exhibits.truth_name if not number else None
        curve.axvspan(span.start, span.stop, color=WRONG_COLOUR, alpha=0.18, lw=0, label=name)
        inside = np.arange(span.start, span.stop)
        curve.plot(inside, score_T[inside], color=WRONG_COLOUR, linewidth=1.2)
    curve.axhline(exhibits.tau[video], color="#0072B2", ls="--", lw=1, label="threshold τ")
    curve.set_xlim(0, num_frames)
    curve.set_xlabel("frame", fontsize=8)
    curve.set_ylabel("CSL, smoothed", fontsize=8)
    curve.legend(fontsize=7, frameon=False, loc="upper right")
    curve.tick_params(labelsize=7)
    kinds = ", ".join(dict.fromkeys(exhibits.wrong[video].values()))
    figure.suptitle(f"{video}: {kinds}", fontsize=9)
    return figure


def bars(exhibits: Exhibits) -> Figure:
    """A row for the truth and for each method, green where right and red where wrong."""
    videos = exhibits.compared()
    rows = len(exhibits.methods) + 1
    figure = Figure(figsize=(7.2, (0.24 * rows + 0.3) * len(videos) + 0.3), layout="constrained")
    for axes, video in zip(
        figure.subplots(len(videos), 1, squeeze=False)[:, 0], videos, strict=True
    ):
        masks: dict[str, BoolArray] = {exhibits.truth_name: exhibits.wrong_mask(video)}
        masks |= {name: by_video[video] for name, by_video in exhibits.methods.items()}
        num_frames = exhibits.audit.annotation(video).num_frames
        for place, mask_T in enumerate(masks.values()):
            low = len(masks) - 1 - place
            axes.broken_barh([(0, num_frames)], (low + 0.08, 0.84), color=RIGHT_COLOUR, lw=0)
            stretches = [(span.start, len(span)) for span in spans_where(mask_T)]
            axes.broken_barh(stretches, (low + 0.08, 0.84), color=WRONG_COLOUR, lw=0)
        axes.set_yticks(np.arange(len(masks)) + 0.5, list(masks)[::-1], fontsize=7)
        axes.set_xlim(0, num_frames)
        axes.tick_params(axis="x", labelsize=6)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        kinds = ", ".join(dict.fromkeys(exhibits.wrong[video].values()))
        axes.set_title(f"{video}: {kinds}", fontsize=8, loc="left", pad=2)
    axes.set_xlabel("frame", fontsize=8)
    colours = {"right": RIGHT_COLOUR, "wrong, or detected as wrong": WRONG_COLOUR}
    patches = [Patch(color=colour, label=name) for name, colour in colours.items()]
    figure.legend(
        handles=patches, loc="outside upper right", ncols=len(patches), fontsize=7, frameon=False
    )
    return figure


def trajectories(exhibits: Exhibits) -> Figure:
    """Loss over checkpoints of frames that are wrong and of others, a panel for each video."""
    videos = exhibits.compared()
    columns = min(3, len(videos))
    rows = -(-len(videos) // columns)
    figure = Figure(figsize=(2.5 * columns, 2.0 * rows + 0.3), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes in panels[len(videos) :]:
        axes.axis("off")
    for axes, video in zip(panels, videos, strict=False):
        epochs = exhibits.audit.log_probabilities(video).epochs
        wrong, right = exhibits.chosen_frames(video)
        groups = ((right, RIGHT_COLOUR, "-", "right"), (wrong, WRONG_COLOUR, "--", "wrong"))
        for frames, colour, dashes, name in groups:
            for number, frame in enumerate(frames):
                losses_E = exhibits.audit.trajectory(video, frames=frame)[:, 0]
                label = name if not number else None
                axes.plot(epochs, losses_E, dashes, color=colour, lw=0.9, label=label)
        axes.axhline(exhibits.tau[video], color="#0072B2", ls=":", lw=1.3, label="τ")
        kinds = ", ".join(dict.fromkeys(exhibits.wrong[video].values()))
        axes.set_title(f"{video}: {kinds}", fontsize=8)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        axes.tick_params(labelsize=6)
        axes.set_ylim(bottom=0)
    panels[0].legend(fontsize=6, frameon=False)
    figure.supxlabel("checkpoint", fontsize=8)
    figure.supylabel("loss", fontsize=8)
    return figure


def maps(exhibits: Exhibits, *, most: int) -> Figure:
    """Loss with a row for each frame and a column for each checkpoint, bright where it is high.

    With one video of each kind, panels stand side by side as in the paper's text; with more, a
    kind has a row as in its appendix. Boxes are around what is wrong.
    """
    kinds = {kind: videos[:most] for kind, videos in exhibits.kinds.items()}
    columns = max((len(videos) for videos in kinds.values()), default=1)
    rows, columns = (1, len(kinds)) if most == 1 else (len(kinds), columns)
    figure = Figure(figsize=(2.4 * columns + 0.6, 2.5 * rows + 0.3), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    if most == 1:
        panels = panels.T
    losses = {
        video: shrunk_losses(exhibits.audit, video, max_columns=MAP_ROWS).columns_EW
        for videos in kinds.values()
        for video in videos
    }
    # One scale for all, or clean videos would look as bright as the others.
    highest = max((highest_shown(losses_EW) for losses_EW in losses.values()), default=1.0)
    picture = None
    for row, (kind, videos) in zip(panels, kinds.items(), strict=True):
        for axes in row[len(videos) :]:
            axes.axis("off")
        for axes, video in zip(row, videos, strict=False):
            picture = _map(axes, exhibits, video, losses[video] / highest)
            axes.set_title(f"{kind}: {video}", fontsize=8)
    if picture is not None:
        bar = figure.colorbar(picture, ax=panels, shrink=0.8)
        bar.set_label("loss, share of the highest", fontsize=8)
        bar.ax.tick_params(labelsize=6)
    figure.supxlabel("checkpoint", fontsize=8)
    figure.supylabel("frame", fontsize=8)
    return figure


def _map(axes: Axes, exhibits: Exhibits, video: str, share_EW: FloatArray):  # type: ignore[no-untyped-def]
    num_checkpoints = len(share_EW)
    num_frames = exhibits.audit.annotation(video).num_frames
    picture = axes.imshow(
        share_EW.T,
        aspect="auto",
        cmap="inferno",
        interpolation="nearest",
        vmin=0,
        vmax=1,
        extent=(0.5, num_checkpoints + 0.5, num_frames, 0),
    )
    for span in exhibits.wrong.get(video, {}):
        corner = (0.6, span.start)
        axes.add_patch(
            Rectangle(
                corner,
                num_checkpoints - 0.2,
                len(span),
                fill=False,
                edgecolor="#ff4040",
                linestyle="--",
                linewidth=1.4,
                # Red alone can't be seen on the map's own reds.
                path_effects=[withStroke(linewidth=2.6, foreground="white")],
            )
        )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    axes.tick_params(labelsize=6)
    return picture


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


def _strip(axes: Axes, pictures: list[Pixels], num_frames: int) -> None:
    """Pictures side by side, each above the middle of its part of the video."""
    width = num_frames / len(pictures)
    for place, pixels in enumerate(pictures):
        left = place * width
        axes.imshow(pixels, extent=(left + 0.03 * width, left + 0.97 * width, 0, 1), aspect="auto")
    axes.set_xlim(0, num_frames)
    axes.set_ylim(0, 1)
    axes.axis("off")


def _bar(axes: Axes, labels_T: IntArray) -> None:
    """Steps in the colours of their classes; what has no label stays empty."""
    for span in runs_of(labels_T):
        label = int(labels_T[span.start])
        if label != UNLABELLED:
            axes.axvspan(span.start, span.stop, color=class_colour(label), linewidth=0)
    axes.set_xlim(0, len(labels_T))
    axes.set_xticks([])
    axes.set_yticks([])
