"""The rule `edits`: flags that are fixes, from trajectories in storage, without Ray or a model.

Eight videos of six steps, two a person; one more trains. The models know the truth but for noise.
"""

import html
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import builder
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from rich.console import Console
from served import client_of
from typer.testing import CliRunner

import csl_dist
from csl_dist.audit.reader import Audit
from csl_dist.audit.relabel import relabel
from csl_dist.audit.revision import AuditStore
from csl_dist.cli import main  # noqa: F401  registers every command
from csl_dist.cli.app import app
from csl_dist.cli.tables.results import flag_table
from csl_dist.config import AuditConfig, FlagConfig, ManifestConfig, RunConfig, ScorerConfig
from csl_dist.data.mistakes import labels_for_length
from csl_dist.errors import DataError
from csl_dist.evaluate.metrics import flag_metrics
from csl_dist.export import export
from csl_dist.flag.edit_calibration import EditCalibration
from csl_dist.flag.edit_findings import doubt_of, fix_of
from csl_dist.flag.edit_reviews import earlier_decisions
from csl_dist.flag.edit_rule import Belief, learnt_edits
from csl_dist.flag.edits.edit import Edit
from csl_dist.flag.edits.evidence import COLUMNS
from csl_dist.flag.edits.findings import Finding, resolved
from csl_dist.flag.edits.labelled import LabelledVideo, OtherLabels
from csl_dist.flag.edits.lists import ListName
from csl_dist.flag.edits.probability import SHIPPED, SHIPPED_CURVES
from csl_dist.pipeline import put_run
from csl_dist.report.overview import overview
from csl_dist.report.page import render
from csl_dist.review.store import Decision, NewReview, store_of
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage
from csl_dist.training.inputs import open_inputs
from csl_dist.types import EditKind, ErrorKind, Fix, PlantedError, Span

Labels = npt.NDArray[np.int64]

CLASSES = ("clean", "cut", "tie", "pull", "sew", "close")
FPS = 5
NUM_EPOCHS = 6
VIDEOS = tuple(f"v{i}" for i in range(8))
RENAMED, MOVED, MISSED = "v1", "v4", "v6"


def lengths_of(video: str) -> list[int]:
    rng = np.random.default_rng([3, *video.encode()])
    return rng.integers(40, 70, size=len(CLASSES)).tolist()


def true_labels(video: str) -> Labels:
    return np.repeat(np.arange(len(CLASSES)), lengths_of(video))


def segment(video: str, label: int) -> Span:
    cuts = np.cumsum([0, *lengths_of(video)]).tolist()
    return Span(cuts[label], cuts[label + 1])


def annotated_labels(video: str) -> Labels:
    """v1: `tie` is called `close`; v4: `pull` begins 6 s late; v6: `sew` is called `pull`."""
    labels_T = true_labels(video)
    if video == RENAMED:
        span = segment(video, 2)
        labels_T[span.start : span.stop] = 5
    if video == MOVED:
        place = segment(video, 3).start
        labels_T[place : place + 30] = 2
    if video == MISSED:
        span = segment(video, 4)
        labels_T[span.start : span.stop] = 3
    return labels_T


def log_probabilities(video: str, scorer: str, truth_T: Labels) -> npt.NDArray[np.float16]:
    """(E, T, C): what checkpoints that get better say of a video."""
    rng = np.random.default_rng([*video.encode(), *scorer.encode()])
    logits = rng.normal(0, 1.0, size=(NUM_EPOCHS, len(truth_T), len(CLASSES)))
    logits[:, np.arange(len(truth_T)), truth_T] += np.linspace(1, 4, NUM_EPOCHS)[:, None]
    logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return logits.astype(np.float16)


def names_of(labels_T: Labels) -> list[str]:
    return [CLASSES[label] for label in labels_T]


def make_root(
    folder: Path,
    flag: FlagConfig,
    *,
    truth: Callable[[str], Labels] = true_labels,
    annotated: Callable[[str], Labels] = annotated_labels,
) -> str:
    """Writes the dataset and a finished run; returns the run's root."""
    rng = np.random.default_rng(0)
    videos = [
        builder.MadeVideo(
            id=video,
            split="train" if video == "train" else "audit",
            names_T=names_of(annotated(video)),
            features_TD=rng.normal(size=(len(true_labels(video)), 4)).astype(np.float32),
            group="train" if video == "train" else f"person {int(video[1]) // 2}",
        )
        for video in (*VIDEOS, "train")
    ]
    builder.write_manifest(folder, videos, fps=FPS, classes=CLASSES)
    config = RunConfig(
        root=str(folder / "run"),
        dataset=ManifestConfig(path=str(folder)),
        scorers={
            "transformer": ScorerConfig(arguments={"preset": "tiny"}),
            "framewise": ScorerConfig(),
        },
        flag=flag,
        audit=AuditConfig(swapped_copies=0),
    )
    inputs = open_inputs(config)
    put_run(inputs)
    for scorer in config.scorers:
        builder.write_checkpoints(inputs, scorer, NUM_EPOCHS, with_weights=False)
        for video in VIDEOS:
            logp_ETC = log_probabilities(video, scorer, truth(video))
            builder.write_trajectories(
                inputs,
                scorer,
                {video: logp_ETC.shape[1]},
                lambda epoch, logp_ETC=logp_ETC: logp_ETC[epoch - 1],
                num_epochs=NUM_EPOCHS,
            )
    builder.finish_run(inputs)
    return config.root


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    root = make_root(tmp_path_factory.mktemp("edits"), FlagConfig(rule="edits"))
    return csl_dist.open_audit(root)


def flag_of(audit: Audit, video: str) -> object:
    [row] = audit.flags(video=video).itertuples()
    return row


def test_renamed_step_is_flagged_with_its_span_its_label_and_the_fix(audit: Audit) -> None:
    flag, span = flag_of(audit, RENAMED), segment(RENAMED, 2)
    assert (flag.start, flag.stop) == (span.start, span.stop)
    assert (flag.kind, flag.list) == (ErrorKind.MISLABEL, "steps")
    assert (flag.label, flag.suggested) == ("close", "tie")
    assert flag.fix == f"rename {span.start} {span.stop}"
    assert (flag.fix_label, flag.fix_start, flag.fix_stop) == ("tie", span.start, span.stop)
    assert flag.probability > 0.5
    assert flag.start_seconds == pytest.approx(span.start / FPS)
    assert flag.stop_seconds == pytest.approx(span.stop / FPS)
    assert f"Labelled close from {span.start / FPS:.1f}" in flag.why
    assert "100% of later checkpoints agree" in flag.why


def test_moved_boundary_is_proposed_where_the_truth_is(audit: Audit) -> None:
    flag, place = flag_of(audit, MOVED), segment(MOVED, 3).start
    assert (flag.kind, flag.list) == (ErrorKind.BOUNDARY, "boundaries")
    assert flag.start == pytest.approx(place, abs=2)
    assert flag.stop == place + 30
    assert flag.fix == f"boundary {place + 30} {flag.start}"
    assert (flag.label, flag.fix_label) == ("tie", "pull")
    assert flag.probability > 0.5


def test_forgotten_step_is_proposed_inside_the_one_that_hides_it(audit: Audit) -> None:
    flag, span = flag_of(audit, MISSED), segment(MISSED, 4)
    assert flag.kind == ErrorKind.MISSING
    assert (flag.start, flag.stop) == pytest.approx((span.start, span.stop), abs=2)
    assert (flag.label, flag.fix_label) == ("pull", "sew")


def test_boundary_that_is_off_by_no_more_than_the_tolerance_is_no_finding(tmp_path: Path) -> None:
    """The one of v4 is off by 6 seconds."""
    audit = csl_dist.open_audit(make_root(tmp_path, FlagConfig(tolerance_seconds=7.0)))
    assert set(audit.flags().video) == {RENAMED, MISSED}
    assert "boundaries" not in set(audit.flags(below=True, video=MOVED)["list"])


def test_right_videos_have_no_flag(audit: Audit) -> None:
    assert set(audit.flags().video) == {RENAMED, MOVED, MISSED}
    assert audit.flags()["rank"].tolist() == [1, 2, 3]


def test_flags_of_all_lists_are_ranked_by_the_probability_of_an_error(audit: Audit) -> None:
    flags = audit.flags()
    assert set(flags["list"]) == {"steps", "boundaries"}
    assert flags.probability.is_monotonic_decreasing
    log_odds = np.log(flags.probability / (1 - flags.probability))
    assert flags.score.to_numpy() == pytest.approx(log_odds.to_numpy())


def test_evidence_of_steps_counts_less_where_models_know_the_person_badly(
    audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By how much, tests/flag/edits/test_surprise.py tells."""
    monkeypatch.setattr("csl_dist.flag.edits.surprise.WEIGHT", 0.0)
    plain = csl_dist.open_audit(make_root(tmp_path, FlagConfig()))
    both = [
        found.flags(below=below).set_index(["video", "start", "stop", "fix"])
        for found in (audit, plain)
        for below in (False, True)
    ]
    moved, unmoved = pd.concat(both[:2]), pd.concat(both[2:])
    steps = moved[moved.list == "steps"].index.intersection(unmoved.index)
    by_video = (moved.evidence[steps] - unmoved.evidence[steps]).groupby("video")
    assert {RENAMED, MISSED} <= set(by_video.groups)
    assert (by_video.max() - by_video.min()).max() < 1e-9, "all steps of a video alike"
    assert by_video.mean().abs().min() > 0.1
    others = moved[moved.list != "steps"].index.intersection(unmoved.index)
    assert len(others)
    assert (moved.evidence[others] == unmoved.evidence[others]).all()


def test_suspicion_of_frames_is_highest_where_labels_are_wrong(audit: Audit) -> None:
    span = segment(RENAMED, 2)
    score_T = audit.deciding_score(RENAMED)
    assert score_T.shape == true_labels(RENAMED).shape
    inside_T = np.zeros(len(score_T), dtype=bool)
    inside_T[span.start : span.stop] = True
    assert score_T[inside_T].min() > score_T[~inside_T].max()
    assert (audit.settings.scorer, audit.settings.deciding) == ("committee", "suspicion")


def test_scores_of_the_committee_are_read_by_name_and_beside_the_scorers(audit: Audit) -> None:
    table = audit.scores(RENAMED)
    for name in ("suspicion", "order"):
        np.testing.assert_array_equal(table[name], audit.score(RENAMED, name))
    np.testing.assert_array_equal(table["suspicion"], audit.deciding_score(RENAMED))
    with pytest.raises(DataError, match="there is no score 'suspicon'; did you mean 'suspicion'"):
        audit.score(RENAMED, "suspicon")
    with pytest.raises(DataError, match="own labels alone"):
        audit.score(RENAMED, "order", labels=true_labels(RENAMED))


def test_suspicion_falls_where_the_fix_is_made_and_stays_elsewhere(audit: Audit) -> None:
    span = segment(RENAMED, 2)
    before_T = audit.deciding_score(RENAMED)
    after_T = audit.deciding_score(RENAMED, labels=true_labels(RENAMED))
    changed_T = annotated_labels(RENAMED) != true_labels(RENAMED)
    assert np.flatnonzero(changed_T).tolist() == list(range(span.start, span.stop))
    assert (after_T[changed_T] < before_T[changed_T] - 3).all()
    assert (after_T[~changed_T] == before_T[~changed_T]).all()


def test_what_lies_below_the_line_goes_on_where_the_flags_end(tmp_path: Path) -> None:
    audit = csl_dist.open_audit(make_root(tmp_path, FlagConfig(expected_error_rate=1e-4)))
    below = audit.flags(below=True)
    assert audit.flags().video.tolist() == [MOVED], "the rate is that of steps"
    assert set(below.video) == {RENAMED, MISSED}, "so few errors are expected"
    assert below["rank"].tolist() == [2, 3, 4]
    assert "order" in set(below["list"]), "which a flagged step would explain"
    assert (below.probability < 0.5).all()
    assert audit.flags(below=True, top=1)["rank"].tolist() == [2]


def test_labels_of_training_videos_tell_of_order_and_stay_with_the_audit(audit: Audit) -> None:
    store = AuditStore(RunPaths(Storage(audit.paths.root.url)))
    [trained] = store.trained(audit.revision)
    assert (trained.id, trained.group) == ("train", "train")
    assert trained.labels_T.tolist() == true_labels("train").tolist()


def test_finding_that_scorers_disagree_on_is_ambiguous() -> None:
    edit = Edit(
        kind=EditKind.RENAME,
        start=0,
        stop=4,
        label=0,
        last_label=0,
        new_label=1,
        place=0,
        segments=(),
        changed_share=1.0,
        quick_gain=0.0,
    )
    video = LabelledVideo(id="v", group="p", labels_T=np.repeat([0, 1], 5), fps=1.0)
    statistics = OtherLabels([video], num_classes=3).everyone()

    def doubt(least_family: float, late_share: float, *, label: int = 0) -> str | None:
        evidence_K = np.zeros(len(COLUMNS))
        evidence_K[COLUMNS.index("least_family")] = least_family
        evidence_K[COLUMNS.index("late_share")] = late_share
        finding = Finding(edit=replace(edit, label=label), log_odds=0.0, evidence_K=evidence_K)
        return doubt_of(finding, statistics)

    assert doubt(0.5, 0.9) is None
    assert doubt(-1.5, 0.9) == "Models disagree with each other here", "one scorer is against it"
    assert doubt(0.5, 0.4) is not None, "later checkpoints change their mind"
    assert "never saw it" in str(doubt(0.5, 0.9, label=2)), "nobody else has the label"


@pytest.mark.parametrize(
    ("labels_T", "num_classes", "message"),
    [
        (np.full(9, -1), 3, "no labelled frame"),
        (np.empty(0, dtype=int), 3, "no labelled frame"),
        (np.zeros(9, dtype=int), 1, "one class alone"),
    ],
)
def test_labels_that_nothing_can_be_said_of_are_refused(
    labels_T: Labels, num_classes: int, message: str
) -> None:
    videos = [LabelledVideo(id="v", group="v", labels_T=labels_T, fps=1.0)]
    others = OtherLabels(videos, num_classes=num_classes)
    with pytest.raises(DataError, match=message):
        learnt_edits(videos, others, lambda *_: None, scorers=("a",), num_classes=num_classes)


def test_calibration_says_how_many_flags_are_right(audit: Audit) -> None:
    calibration = audit.calibration()
    assert isinstance(calibration, EditCalibration)
    assert calibration.promise is not None
    assert calibration.promise.by_list == {"steps": 2, "boundaries": 1}
    assert calibration.promise.low < calibration.promise.right < calibration.promise.high <= 3
    assert calibration.promise.right > 1.5
    assert calibration.learnt.num_videos == len(VIDEOS)
    assert "of the first 3 flags (steps 2, boundaries 1) about" in calibration.sentence()
    promise = replace(
        calibration.promise, flags=1, right=0.8, by_list={ListName.ORDER: 1}, budgets=()
    )
    single = replace(calibration, promise=promise).sentence()
    assert single.startswith("the one flag (order 1) is right with a probability of 80% (fitted")
    nothing = replace(calibration, promise=replace(promise, flags=0)).sentence()
    assert nothing.startswith("nothing is likelier wrong than right (fitted")
    content = json.loads(json.dumps(calibration.as_json()))
    assert EditCalibration.from_json(content).as_json() == calibration.as_json()
    del content["promise"]["by_list"]
    content["promise"] |= {"flags": 2, "other_flags": {"boundaries": 1, "order": 0}}
    sentence = EditCalibration.from_json(content).sentence()
    assert "of the first 2 flags of steps about" in sentence, "an audit by an earlier rule"
    content["promise"]["flags"] = 0
    sentence = EditCalibration.from_json(content).sentence()
    assert sentence.startswith("no step is likelier wrong than right"), "others may be flagged"


def test_weights_of_boundaries_and_order_that_an_earlier_rule_fitted_are_not_used(
    audit: Audit,
) -> None:
    content = json.loads(json.dumps(audit.calibration().as_json()))
    for model in content["models"].values():
        model["offset"] -= 3
    models = EditCalibration.from_json(content).learnt.models
    for kind in (EditKind.BOUNDARY, EditKind.SWAP):
        assert models[kind].offset == SHIPPED[kind].offset, kind
    fitted = audit.calibration().learnt.models[EditKind.RENAME]
    assert models[EditKind.RENAME].offset == pytest.approx(fitted.offset - 3)


def test_flag_goes_once_its_fix_is_made(tmp_path: Path) -> None:
    root = make_root(tmp_path / "data", FlagConfig(rule="edits"))
    for flag in csl_dist.open_audit(root).flags().itertuples():
        labels_T = annotated_labels(flag.video)
        labels_T[flag.fix_start : flag.fix_stop] = CLASSES.index(flag.fix_label)
        folder = tmp_path / "fixed"
        folder.mkdir(exist_ok=True)
        (folder / f"{flag.video}.txt").write_text(builder.label_text(names_of(labels_T)))
    made = relabel(root, tmp_path / "fixed")
    assert len(made.resolved) == 3
    assert made.after.flags().empty
    assert "nothing is likelier wrong than right" in made.after.calibration().sentence()
    assert made.corrections.was_flagged.all()
    assert "no longer flagged" in render(made.after)


def exchanged_truth(video: str) -> Labels:
    return true_labels(video)[::-1] if video == "v2" else true_labels(video)


def exchanged_root(folder: Path, flag: FlagConfig) -> str:
    """A run in which v2 and v5 have each other's labels."""

    def annotated(video: str) -> Labels:
        other = {"v2": "v5", "v5": "v2"}.get(video, video)
        return labels_for_length(exchanged_truth(other), len(exchanged_truth(video)))

    return make_root(folder, flag, truth=exchanged_truth, annotated=annotated)


def test_videos_with_each_others_labels_are_named(tmp_path: Path) -> None:
    root = exchanged_root(tmp_path, FlagConfig())
    audit = csl_dist.open_audit(root)
    [exchange] = audit.exchanges()
    sentence = "videos that seem to have each other's labels: v2 and v5"
    assert exchange.sentence() == sentence
    assert overview(audit).exchanges == [sentence]
    assert html.escape(sentence) in audit._repr_html_()
    page = render(audit)
    for video in exchange:
        [place] = re.findall(rf'id="video-(\d+)"[^>]*>\n<summary>{video} ', page)
        assert f'<a href="#video-{place}">{video}</a>' in page.partition('id="spans"')[0]
    assert CliRunner().invoke(app, ["query", root, "top"]).stdout.startswith(sentence)
    with client_of(root) as client:
        assert client.get("/api/audits/run/overview").json()["exchanges"] == [sentence]


def test_labels_that_are_exchanged_back_claim_only_what_was_flagged(tmp_path: Path) -> None:
    root = exchanged_root(tmp_path, FlagConfig(expected_error_rate=1e-4))  # so that nothing is
    fixed = tmp_path / "fixed"
    fixed.mkdir()
    for video in ("v2", "v5"):
        (fixed / f"{video}.txt").write_text(builder.label_text(names_of(exchanged_truth(video))))
    assert not set(csl_dist.open_audit(root).flags().video) & {"v2", "v5"}
    told = CliRunner(env={"COLUMNS": "120"}).invoke(app, ["relabel", root, str(fixed)])
    assert "none was flagged before" in told.stdout
    assert "no longer flagged" not in told.stdout
    assert "v2 and v5 no longer seem to have each other's labels" in told.stdout


def test_decisions_of_reviewers_move_probabilities_and_settle_spans(tmp_path: Path) -> None:
    root = make_root(tmp_path, FlagConfig(rule="edits"))
    before = csl_dist.open_audit(root)
    store = store_of(root, None)
    store.create()
    for video, decision in ((RENAMED, Decision.WRONG), (MOVED, Decision.CORRECT)):
        flag = flag_of(before, video)
        review = NewReview(
            key=video,
            revision=1,
            video=video,
            start=flag.start,
            stop=flag.stop,
            decision=decision,
            label=flag.suggested if decision is Decision.WRONG else None,
            reviewer="ada",
        )
        store.append(review)
    inputs = open_inputs(before.config)
    assert builder.finish_run(inputs) == 2, "decisions make a new audit"
    assert builder.finish_run(inputs) == 2, "which is made once"
    after = csl_dist.open_audit(root)
    assert flag_of(after, RENAMED).probability == 1
    assert after.flags(video=MOVED).empty, "a reviewer found it right"
    assert flag_of(after, MISSED).probability > flag_of(before, MISSED).probability
    assert "2 spans were reviewed" in after.calibration().sentence()
    calibration = after.calibration()
    again = EditCalibration.from_json(json.loads(json.dumps(calibration.as_json())))
    assert again.reviews == calibration.reviews
    verdict = calibration.reviews[RENAMED, *_ends(segment(RENAMED, 2))]
    assert verdict.flagged is not None
    assert verdict.flagged == ("steps", flag_of(before, RENAMED).evidence)
    assert flag_of(after, RENAMED).evidence == pytest.approx(verdict.flagged[1])
    assert calibration.promise.expected_errors >= 1, "the one that a reviewer confirmed"

    # Once it is corrected no finding tells of it, but it still speaks for the others.
    labels_T = annotated_labels(RENAMED)
    span = segment(RENAMED, 2)
    labels_T[span.start : span.stop] = CLASSES.index("tie")
    (tmp_path / "fixed").mkdir()
    (tmp_path / "fixed" / f"{RENAMED}.txt").write_text(builder.label_text(names_of(labels_T)))
    fixed = relabel(root, tmp_path / "fixed").after
    assert fixed.flags(video=RENAMED).empty
    assert fixed.record.num_reviewed == 2
    lower = flag_of(after, MISSED).probability
    assert flag_of(fixed, MISSED).probability == pytest.approx(lower, abs=0.03)
    earlier = earlier_decisions(fixed.calibration().reviews, {RENAMED: labels_T}, CLASSES)
    assert earlier["steps"] == [(verdict.flagged[1], True)]


def _ends(span: Span) -> tuple[int, int]:
    return span.start, span.stop


def test_decisions_on_a_list_make_its_probabilities_surer() -> None:
    curve = SHIPPED_CURVES[ListName.BOUNDARIES]
    before = Belief(curve=curve, excess=0.0)
    after = before.reviewed([(1.0, False), (0.5, False)])
    log_odds_N = np.array([1.0])
    assert after.probability(log_odds_N)[0] < 0.5 < before.probability(log_odds_N)[0]
    assert after.deviation < before.deviation
    corrected = before.reviewed([(1.0, False), (0.5, False), *[(1.0, True)] * 6])
    assert corrected.probability(log_odds_N)[0] > before.probability(log_odds_N)[0], "6 of 8 right"


def test_other_labels_of_the_same_person_change_nothing_that_a_video_is_judged_by() -> None:
    def statistics(own: Labels):
        labels = {video: annotated_labels(video) for video in VIDEOS} | {"v1": own}
        videos = [
            LabelledVideo(id=v, group=str(int(v[1]) // 2), labels_T=labels_T, fps=FPS)
            for v, labels_T in labels.items()
        ]
        return OtherLabels(videos, num_classes=len(CLASSES))

    before, after = statistics(annotated_labels("v1")), statistics(annotated_labels("v1")[::-1])
    for name in before.about("v0").__dataclass_fields__:
        one, other = getattr(before.about("v0"), name), getattr(after.about("v0"), name)
        assert one == pytest.approx(other), f"{name} of the same person's other video"
    assert before.about("v2").bigram_CC != pytest.approx(after.about("v2").bigram_CC)


def test_a_single_group_is_judged_by_its_other_videos() -> None:
    videos = [
        LabelledVideo(id=v, group="all", labels_T=true_labels(v), fps=FPS) for v in VIDEOS[:3]
    ]
    others = OtherLabels(videos, num_classes=len(CLASSES))
    assert others.about("v0").number_C.tolist() == [2] * len(CLASSES)


def test_expected_error_rate_moves_probabilities(tmp_path: Path) -> None:
    flag = FlagConfig(rule="edits", expected_error_rate=0.9)
    many = csl_dist.open_audit(make_root(tmp_path / "many", flag))
    few_errors = replace(flag, expected_error_rate=0.0001)
    few = csl_dist.open_audit(make_root(tmp_path / "few", few_errors))
    assert len(many.flags(video=RENAMED)) >= 1
    assert "steps" not in set(few.flags()["list"])
    assert len(many.flags()) > len(few.flags())


def test_other_rules_have_no_fix_and_no_probability(made_root: str) -> None:
    flags = csl_dist.open_audit(made_root).flags()
    assert flags[["probability", "fix", "fix_label", "fix_start", "list"]].isna().all(axis=None)


def test_metrics_know_what_the_rule_calls_errors(audit: Audit) -> None:
    span = segment(RENAMED, 2)
    moved = segment(MOVED, 3).start
    errors = [
        PlantedError(video=RENAMED, kind=ErrorKind.MISLABEL, span=span, true_label="tie"),
        PlantedError(video=MOVED, kind=ErrorKind.JITTER, span=Span(moved, moved + 30)),
        PlantedError(video=MISSED, kind=ErrorKind.DUPLICATE, span=segment(MISSED, 4)),
    ]
    metrics = flag_metrics(errors, audit.flags())
    assert metrics == dict.fromkeys(metrics, 1.0)


def test_report_tells_fix_and_probability_and_draws_no_threshold(audit: Audit) -> None:
    page = render(audit)
    assert "Changes of the labels that explain most" in page
    assert f'title="log-odds {flag_of(audit, RENAMED).score:.2f}"' in page
    assert "of the first 3 flags (steps 2, boundaries 1) about" in page
    assert "threshold" not in page


@pytest.mark.parametrize("name", ["csv", "parquet", "activitynet", "fiftyone"])
def test_flags_with_fixes_are_exported(audit: Audit, tmp_path: Path, name: str) -> None:
    assert export(audit, name, tmp_path / "out").startswith("3 spans of 3 videos")


def test_service_shows_fixes(audit: Audit) -> None:
    with client_of(audit.paths.root.url) as client:
        flags = client.get("/api/audits/run/flags").json()["flags"]
    by_video = {flag["video"]: flag for flag in flags}
    span = segment(RENAMED, 2)
    assert by_video[RENAMED]["fix"] == f"rename {span.start} {span.stop}"
    assert by_video[RENAMED]["probability"] > 0.5
    assert by_video[MOVED]["probability"] > 0.5
    assert by_video[MOVED]["list"] == "boundaries"


def test_query_says_how_many_more_there_are(audit: Audit) -> None:
    asked = ["query", audit.paths.root.url, "top"]
    assert (
        "the first 2 of 3; --top 3 shows all" in CliRunner().invoke(app, [*asked, "--top=2"]).stdout
    )
    assert "--top" not in CliRunner().invoke(app, asked).stdout


def test_query_lists_fixes(audit: Audit) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(flag_table(audit.flags(), width=200))
    lines = console.export_text().splitlines()
    moved = flag_of(audit, MOVED)
    seconds = moved.stop_seconds - moved.start_seconds
    assert any(RENAMED in line and "rename to tie" in line for line in lines)
    assert any(MOVED in line and f"boundary {seconds:.1f} s earlier" in line for line in lines)


def test_query_filters_frames_by_suspicion(audit: Audit) -> None:
    asked = ["query", audit.paths.root.url, "scores", "--video", RENAMED, "--min-score", "0"]
    found = CliRunner().invoke(app, [*asked, "--format", "csv"]).stdout
    wanted = np.flatnonzero(audit.deciding_score(RENAMED) >= 0).tolist()
    assert wanted == list(range(segment(RENAMED, 2).start, segment(RENAMED, 2).stop))
    assert pd.read_csv(io.StringIO(found)).frame.tolist() == wanted


def made_edit(kind: EditKind, place: int = 10) -> Edit:
    return Edit(
        kind=kind,
        start=10,
        stop=20,
        label=0,
        last_label=0,
        new_label=1,
        place=place,
        segments=(),
        changed_share=1.0,
        quick_gain=0.0,
    )


def test_another_edit_of_the_place_is_told_of_unless_it_is_a_swap() -> None:
    edits = [made_edit(kind) for kind in (EditKind.RENAME, EditKind.DELETE, EditKind.SWAP)]
    odds_N = np.array([2.0, 1.5, 1.9])
    [finding, swap] = resolved(edits, np.zeros((3, 1)), odds_N, fps=5.0, tolerance_seconds=2.0)
    assert (finding.edit, finding.rival) == (edits[0], edits[1])
    assert (swap.edit, swap.rival) == (edits[2], None)


@pytest.mark.parametrize(
    ("kind", "place", "fix"),
    [
        (EditKind.RENAME, 10, "rename 10 20"),
        (EditKind.BOUNDARY, 10, "boundary 20 10"),
        (EditKind.BOUNDARY, 20, "boundary 10 20"),
        (EditKind.SWAP, 14, "swap 10 14 20"),
    ],
)
def test_fix_is_a_word_and_its_frames(kind: EditKind, place: int, fix: str) -> None:
    assert fix_of(made_edit(kind, place)) == Fix.parse(fix)
