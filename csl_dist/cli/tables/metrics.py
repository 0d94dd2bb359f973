"""How well known errors were found."""

from typing import Any

from rich.table import Table

from csl_dist.cli.tables.plain import headed_table
from csl_dist.measures import ORDER, SUSPICION, own_score
from csl_dist.types import ErrorKind


def metrics_table(metrics: dict[str, Any]) -> Table:
    """The paper's columns and those of the run's own score, in percent."""
    title = (
        f"Known errors found: {metrics['videos']} videos, {metrics['frames']:,} frames, "
        f"{metrics['checkpoints']} checkpoints"
    )
    numbers = (
        *("AUC\nfinal", "AUC\nCSL", "AUC\nsmoothed"),
        *("AUC\nown", "AP\nown", "EDA\ntop 10"),
    )
    table = headed_table("error", "scorer", *numbers, numbers=numbers, title=title)
    table.caption = (
        f"own: what this run ranks frames by, {own_words(metrics)}; AP: its average precision; "
        "EDA: share of wrong spans with a frame among its worst 10 %"
    )
    table.caption_justify = "left"
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
    return f"{score} of all scorers, for disorder {ORDER}" if score == SUSPICION else score


def rivals_table(metrics: dict[str, Any]) -> Table:
    """The run's own score, then the paper's and the baselines, which are the temporal scorer's,
    then methods whose scores come from elsewhere."""
    from csl_dist.evaluate.baselines import BASELINES

    own, temporal = metrics["scorer"], metrics["temporal_scorer"]
    kinds = list(metrics["scorers"][temporal])
    numbers = [f"{kind}\n{metric}" for kind in kinds for metric in ("AUC", "AP")]
    title = f"Beside other methods on the trajectories of {temporal}"
    table = headed_table("score", *numbers, numbers=numbers, title=title)
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
