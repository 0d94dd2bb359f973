"""Tables for the terminal."""

import textwrap
import time
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
from rich import box
from rich.markup import escape
from rich.table import Table

from csl_dist.cost.words import size_words, time_words
from csl_dist.measures import ORDER, SUSPICION, own_score
from csl_dist.types import ErrorKind

if TYPE_CHECKING:
    from csl_dist.audit.changes import AuditLine
    from csl_dist.audit.status import StageStatus
    from csl_dist.cost.forecast import Forecast
    from csl_dist.cost.plan import StagePlan
    from csl_dist.cost.rates import Rates
    from csl_dist.data.check import SplitSummary
    from csl_dist.features.catalog import CatalogEntry
    from csl_dist.training.catalog import StoredTraining


def metrics_table(metrics: dict[str, Any]) -> Table:
    """The paper's columns and those of the run's own score, in percent."""
    title = (
        f"Known errors found: {metrics['videos']} videos, {metrics['frames']:,} frames, "
        f"{metrics['checkpoints']} checkpoints"
    )
    table = Table(
        title=title,
        caption=f"own: {own_words(metrics)}; AP: average precision; EDA: of own",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("error")
    table.add_column("scorer")
    for heading in (
        "AUC\nfinal",
        "AUC\nCSL",
        "AUC\nsmoothed",
        "AUC\nown",
        "AP\nown",
        "EDA\ntop 10",
    ):
        table.add_column(heading, justify="right")
    for kind in ErrorKind:
        own = own_score(metrics["score"], kind)
        columns = [
            *(("final", "auc_micro"), ("csl", "auc_micro"), ("csl_smoothed", "auc_micro")),
            *((own, "auc_micro"), (own, "average_precision"), (own, "eda_top_10")),
        ]
        rows = [(s, m[kind]) for s, m in metrics["scorers"].items() if kind in m]
        for scorer, by_name in rows:
            cells = [percent(by_name.get(name, {}), metric) for name, metric in columns]
            table.add_row(kind, scorer, *cells, end_section=scorer == rows[-1][0])
    return table


def own_words(metrics: dict[str, Any]) -> str:
    score: str = metrics["score"]
    return (
        f"{score} of the {metrics['scorer']}, for disorder {ORDER}" if score == SUSPICION else score
    )


PAPER_ROWS = ("figures", "error", "method", "training noise")
"""Columns of the paper's tables that say what a row is; the others hold figures."""


def rivals_table(metrics: dict[str, Any]) -> Table:
    """The run's own score, then the paper's and the baselines, which are the temporal scorer's,
    then methods whose scores come from elsewhere."""
    from csl_dist.evaluate.baselines import BASELINES

    own, temporal = metrics["scorer"], metrics["temporal_scorer"]
    table = Table(
        title=f"Beside other methods on the trajectories of {temporal}",
        box=box.SIMPLE_HEAD,
        title_justify="left",
    )
    table.add_column("score")
    kinds = list(metrics["scorers"][temporal])
    for kind in kinds:
        for metric in ("AUC", "AP"):
            table.add_column(f"{kind}\n{metric}", justify="right")
    rows: dict[str, tuple[str, str | None]] = {f"own, {own}": (own, None)}
    rows |= {name: (temporal, name) for name in ("csl_smoothed", *BASELINES)}
    for heading, (scorer, name) in rows.items():
        cells = [
            percent(
                metrics["scorers"][scorer][kind].get(name or own_score(metrics["score"], kind), {}),
                metric,
            )
            for kind in kinds
            for metric in ("auc_micro", "average_precision")
        ]
        table.add_row(heading, *cells, end_section=name in ("csl_smoothed", BASELINES[-1]))
    for name, by_kind in metrics.get("brought", {}).items():
        cells = [
            percent(by_kind[kind], metric)
            for kind in kinds
            for metric in ("auc_micro", "average_precision")
        ]
        table.add_row(f"{name} (brought)", *cells)
    return table


def paper_table(title: str, frame: pd.DataFrame, *, width: int) -> Table:
    """One of the paper's tables; headings are broken, or it is turned round, to fit a terminal."""
    shown = frame.map(_plain).rename(columns=_plain)
    if _table_width(shown) > width:
        shown = _narrowed(shown)
    if _table_width(shown, break_words=True) > width:
        words = [name for name in frame.columns if name in PAPER_ROWS]
        headings = frame[words].agg(" ".join, axis=1)
        turned = frame.drop(columns=words).T.set_axis(headings, axis=1).reset_index(names="")
        shown = _narrowed(turned.map(_plain))
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), min_width=72
    )
    for name in shown.columns:
        is_word = name in ("", *PAPER_ROWS)
        table.add_column(name, justify="left" if is_word else "right", no_wrap=not is_word)
    rows = shown.to_numpy().tolist()
    in_groups = "error" in shown and shown["error"].nunique() < len(rows)
    for row, after in zip_longest(rows, rows[1:]):
        ends = in_groups and after is not None and after[0] != row[0]
        table.add_row(*map(escape, row), end_section=ends)
    return table


def _plain(text: str) -> str:
    return text.replace("_", " ").replace(" ± ", "±")


def _table_width(frame: pd.DataFrame, *, break_words: bool = False) -> int:
    """Columns of the terminal that a table takes; what says what a row is may be broken."""

    def width(name: str) -> int:
        texts = [*name.splitlines(), *frame[name]]
        is_broken = break_words and name in PAPER_ROWS
        pieces = (text.split() if is_broken else [text] for text in texts)
        return max(len(piece) for own in pieces for piece in own)

    return sum(width(name) + 2 for name in frame.columns) + 1


def _narrowed(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with headings broken so that they are no wider than they must be."""

    def broken(name: str) -> str:
        if name in ("", *PAPER_ROWS):
            return name
        return textwrap.fill(name, max(map(len, [*name.split(), *frame[name]])))

    return frame.rename(columns=broken)


def flag_sentence(metrics: dict[str, Any]) -> str:
    """What reviewers of the flags meet."""
    words = {
        "precision": "of flags are right",
        "recall": "of known errors are flagged",
        "kind_accuracy": "of these with the right kind",
        "suggestion_accuracy": "of mislabelled ones with the right label suggested",
    }
    found = metrics["flags"]
    return "flags: " + ", ".join(f"{found[k]:.0%} {w}" for k, w in words.items() if k in found)


def budget_sentence(metrics: dict[str, Any], kind: str, top: int = 5) -> str:
    """What a reviewer of the worst footage finds of one kind of error."""
    found = metrics["scorers"][metrics["scorer"]][kind][own_score(metrics["score"], kind)]
    minutes = metrics["top_percent_minutes"][kind][str(top)]
    return (
        f"review: the worst {top} % of the footage, {minutes:.1f} minutes, are wrong to "
        f"{percent(found, f'precision_top_{top}')} % and hold "
        f"{percent(found, f'recall_top_{top}')} % of the {kind} errors' frames"
    )


def percent(metrics: dict[str, list[float]], name: str) -> str:
    return f"{100 * metrics[name][0]:.1f}" if name in metrics else "-"


def dataset_table(lines: Sequence["SplitSummary"]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("split")
    for heading in ("videos", "hours", "frames"):
        table.add_column(heading, justify="right")
    for line in lines:
        table.add_row(
            line.split, f"{line.num_videos:,}", f"{line.hours:.2f}", f"{line.num_frames:,}"
        )
    return table


def class_table(classes: Sequence[str], lines: Sequence["SplitSummary"]) -> Table:
    """Frames of each class in each split."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("frames of class")
    for line in lines:
        table.add_column(line.split, justify="right")
    for i, name in enumerate(classes):
        table.add_row(name, *(f"{line.class_frames_C[i]:,}" for line in lines))
    return table


def feature_table(entries: Sequence["CatalogEntry"]) -> Table:
    """What a feature store holds; `repeated` frames could not be decoded."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("encoder", "video", "version"):
        table.add_column(heading)
    for heading in ("frames", "MiB", "repeated"):
        table.add_column(heading, justify="right")
    for entry in entries:
        stored = entry.stored
        facts = (f"{stored.num_frames:,}", str(len(stored.repeated) or "")) if stored else ("…", "")
        size = f"{entry.num_bytes / 2**20:,.1f}"
        table.add_row(entry.encoder, entry.video, entry.fingerprint, facts[0], size, facts[1])
    total = sum(entry.num_bytes for entry in entries)
    table.caption = f"{len(entries)} entries, {total / 2**20:,.1f} MiB; … is not finished"
    return table


def training_table(trainings: Sequence["StoredTraining"]) -> Table:
    """Trainings under a run root; those that an audit uses are marked."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("scorer", "fold", "training", "used"):
        table.add_column(heading)
    for heading in ("epochs", "last", "trained on", "loss"):
        table.add_column(heading, justify="right")
    for training in trainings:
        last = training.infos[-1] if training.infos else None
        loss = last.metrics.get("train_loss") if last else None
        table.add_row(
            training.scorer,
            str(training.fold),
            training.training,
            "yes" if training.is_current else "",
            str(len(training.infos)),
            str(last.epoch) if last else "",
            f"{len(last.train_ids)} videos" if last else "",
            f"{loss:.4f}" if loss is not None else "",
        )
    return table


def status_table(lines: Sequence["StageStatus"]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("stage")
    table.add_column("done", justify="right")
    table.add_column("of", justify="right")
    for line in lines:
        table.add_row(line.stage, f"{line.done:,}", f"{line.total:,}")
    return table


def forecast_table(made: "Forecast") -> Table:
    """What is left of a run, and about how long each stage takes."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("to do", "how much"):
        table.add_column(heading)
    table.add_column("about", justify="right", no_wrap=True)
    for stage in made.stages:
        last = stage is made.stages[-1]
        table.add_row(stage.stage, stage.work, time_words(stage.seconds), end_section=last)
    disk = f"{size_words(made.num_bytes)} to write"
    if made.free_bytes is not None:
        disk += f", {size_words(made.free_bytes)} free"
    table.add_row("all", f"{made.machine}; {disk}", time_words(made.seconds))
    return table


def plan_table(stages: Sequence["StagePlan"]) -> Table:
    """What each stage of a planned run takes, and all of them."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("stage")
    for heading in ("units", "PFLOP", "GB", "hours"):
        table.add_column(heading, justify="right")
    table.add_column("limited by")
    for stage in stages:
        table.add_row(
            stage.stage,
            f"{stage.num_units:,}",
            f"{stage.flops / 1e15:,.1f}",
            f"{stage.num_bytes / 1e9:,.1f}",
            f"{stage.hours:,.2f}",
            stage.limit,
            end_section=stage is stages[-1],
        )
    table.add_row(
        "all",
        f"{sum(stage.num_units for stage in stages):,}",
        f"{sum(stage.flops for stage in stages) / 1e15:,.1f}",
        f"{sum(stage.num_bytes for stage in stages) / 1e9:,.1f}",
        f"{sum(stage.hours for stage in stages):,.2f}",
    )
    return table


def rates_table(rates: "Rates") -> Table:
    """What was measured."""
    table = Table(box=box.SIMPLE_HEAD, title=rates.device, title_justify="left")
    table.add_column("stage")
    table.add_column("TFLOP/s", justify="right")
    table.add_column("frames a pass", justify="right")
    for name, rate in rates.stages.items():
        table.add_row(name, f"{rate.flops_per_second / 1e12:.3g}", f"{rate.num_frames:,}")
    if rates.decoded_per_cpu is not None:
        table.caption = f"decoding: {rates.decoded_per_cpu:,.0f} frames/s a core"
        table.caption_justify = "left"
    return table


WIDE = 110
"""Columns of a terminal from which on a table of flags has all that there is."""


def flag_table(flags: pd.DataFrame, *, width: int) -> Table:
    """Flagged spans; frames are the first and the last. A narrow terminal gets fewer columns.

    Names and labels are broken over lines where there is no room, never cut; numbers never are.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1) if width >= WIDE else (0, 1, 0, 0))
    has_fixes = bool(flags["fix"].notna().any())
    columns = ["rank", "video", "seconds", *(["frames"] if width >= WIDE else []), "score"]
    columns += ["error"] if has_fixes else []
    columns += ["fix"] if has_fixes and width >= WIDE else []
    for heading in (*columns, "kind", "label", "suggested"):
        numeric = heading in ("rank", "seconds", "frames", "score", "error")
        table.add_column(
            heading,
            justify="right" if numeric else "left",
            no_wrap=numeric or heading == "kind",
            min_width=len(heading),
            overflow="fold",
        )
    for flag in flags.itertuples():
        probability = float(flag.probability)  # type: ignore[arg-type]
        cells = {
            "rank": str(flag.rank),
            "video": escape(str(flag.video)),
            "seconds": f"{flag.start_seconds:.1f}-{flag.stop_seconds:.1f}",
            "frames": f"{flag.start}-{flag.stop - 1}",  # type: ignore[operator]
            "score": f"{flag.score:.2f}",
            "error": "-" if pd.isna(probability) else f"{probability:.0%}",
            "fix": _fix_words(flag),
            "kind": str(flag.kind),
            "label": escape(str(flag.label)),
            "suggested": f"{escape(str(flag.suggested))} {flag.suggested_probability:.0%}",
        }
        table.add_row(*(cells[str(column.header)] for column in table.columns))
    return table


def _fix_words(flag: Any) -> str:
    """What is done to the labels of a flag's span; a boundary with the second that it goes to."""
    kind, *places = str(flag.fix).split()
    if kind != "boundary":
        return kind
    to = flag.start_seconds if int(places[1]) == flag.start else flag.stop_seconds
    return f"boundary to {to:.1f}"


def corrections_table(corrections: pd.DataFrame) -> Table:
    """Corrected spans: what they were called, and the score that decides, before and after."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("video", "frames", "label", "corrected", "before", "after", "below"):
        numeric = heading in ("frames", "before", "after")
        table.add_column(heading, justify="right" if numeric else "left")
    for row in corrections.itertuples():
        table.add_row(
            escape(str(row.video)),
            f"{row.start}-{row.stop - 1}",  # type: ignore[operator]
            escape(str(row.label)),
            escape(str(row.corrected)),
            _cell(row.score_before),
            _cell(row.score_after),
            "yes" if row.below_threshold else "no",
        )
    return table


SPARED = ("margin_late", "aum_late", "margin", "aum", "csl_late", "final", "order", "csl")
"""Scores that a narrow terminal does not get, the first ones first."""


def frame_table(frame: pd.DataFrame, *, width: int) -> Table:
    """Any other table that a query gives, a column each; what is left out is told.

    Names and labels are broken over lines where there is no room, never cut; numbers never are.
    """
    roomy = _least_width(frame, gap=3) <= width
    left_out: list[str] = []
    for name in SPARED:
        if roomy or _least_width(frame.drop(columns=left_out), gap=2) <= width:
            break
        left_out += [name] if name in frame.columns else []
    shown = frame.drop(columns=left_out)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1) if roomy else (0, 1, 0, 0))
    for name in shown.columns:
        numeric = pd.api.types.is_numeric_dtype(shown[name])
        heading = name.replace("_", "\n")
        justify: Literal["left", "right"] = "right" if numeric else "left"
        least = max(map(len, heading.split("\n")))
        table.add_column(
            heading, justify=justify, no_wrap=numeric, min_width=least, overflow="fold"
        )
    for row in shown.itertuples(index=False):
        table.add_row(*(_cell(value) for value in row))
    if left_out:
        names = [name for name in frame.columns if name in left_out]
        table.caption = f"no room for {', '.join(names)}; --format csv has all"
        table.caption_justify = "left"
    return table


LEAST_WORDS = 12
"""Columns of a terminal that a name, or a label, has to be broken into."""


def _least_width(frame: pd.DataFrame, *, gap: int) -> int:
    """Columns of the terminal that a table takes, with numbers whole and words broken."""

    def width(name: str) -> int:
        heading = max(map(len, name.split("_")))
        longest = max((len(_cell(value)) for value in frame[name].unique().tolist()), default=0)
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        return max(heading, longest if numeric else min(longest, LEAST_WORDS))

    return sum(width(name) + gap for name in frame.columns) + 1


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "-" if pd.isna(value) else f"{value:.2f}"
    return escape(str(value))


def audits_table(lines: Sequence["AuditLine"]) -> Table:
    """The audits of a run, and what changed from each to the next."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("audit", "made", "videos", "flags", "what changed"):
        table.add_column(heading, justify="right" if heading in ("videos", "flags") else "left")
    for line in lines:
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(line.created))
        changed = escape("; ".join(line.changes))
        table.add_row(
            str(line.number), made, f"{line.num_videos:,}", f"{line.num_flags:,}", changed
        )
    return table
