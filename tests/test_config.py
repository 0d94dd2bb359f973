from pathlib import Path

import pytest

from csl_dist.config import (
    ActivityNetConfig,
    Cholec80Config,
    DatasetConfig,
    EgoperConfig,
    ManifestConfig,
    MstcnConfig,
    RunConfig,
    SplitLists,
    TrainConfig,
    config_as_dict,
    load_config,
    parse_config,
    set_value,
    with_absolute_paths,
)
from csl_dist.errors import ConfigError

MINIMAL = {"root": "/r", "dataset": {"path": "/d"}}


def parse(**sections: object) -> RunConfig:
    return parse_config({**MINIMAL, **sections}, where="c.yaml")


def test_config_with_two_keys_has_the_papers_defaults() -> None:
    config = parse()
    assert (config.train.epochs, config.train.learning_rate) == (200, 1e-4)
    assert list(config.scorers) == ["transformer", "framewise"]


def test_config_as_dict_reads_back_equal() -> None:
    config = parse(train={"epochs": 3}, scorers={"a": {"model": "framewise"}})
    assert parse_config(config_as_dict(config), where="") == config


@pytest.mark.parametrize(
    "dataset",
    [
        ManifestConfig(path="/d", splits=SplitLists(train=("a",), audit=("b", "c"))),
        ManifestConfig(path="/d", folds=3, group="^P[0-9]", fps=15, truth="/t.csv"),
        Cholec80Config(path="/d", splits="tecno"),
        EgoperConfig(path="/d", task="tea", source="frames"),
        MstcnConfig(path="/d", split=4, features_fps=30.0),
        ActivityNetConfig(path="/d/a.json", media="/m"),
    ],
    ids=lambda dataset: dataset.layout,
)
def test_dataset_of_every_layout_reads_back_equal(dataset: DatasetConfig) -> None:
    config = RunConfig(root="/r", dataset=dataset)
    assert parse_config(config_as_dict(config), where="") == config
    assert with_absolute_paths(config) == config


def test_dataset_section_without_a_layout_is_a_manifest() -> None:
    assert parse().dataset == ManifestConfig(path="/d")


def test_media_of_activitynet_become_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = RunConfig(root="/r", dataset=ActivityNetConfig(path="a.json", media="m"))
    assert with_absolute_paths(config).dataset == ActivityNetConfig(
        path=str(tmp_path / "a.json"), media=str(tmp_path / "m")
    )


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"train": {"epoch": 3}}, "unknown key 'train.epoch'; did you mean 'epochs'?"),
        ({"trian": {}}, "unknown key 'trian'; did you mean 'train'?"),
        ({"scorers": {"a": {"modle": 1}}}, "unknown key 'scorers.a.modle'; did you mean 'model'?"),
        ({"train": {"epochs": "many"}}, "'train.epochs' is 'many': input should be a valid int"),
        ({"train": {"epochs": 0}}, "'train.epochs' is 0: input should be greater than or equal"),
        ({"score": {"window": 4}}, "score.window: 4 is even"),
        ({"dataset": {"path": "d", "fps": float("inf")}}, "'dataset.fps' is inf"),
        ({"corrupt": {"lengths": [9, 2]}}, "corrupt.lengths: [9, 2] must name the shorter"),
        ({"corrupt": {"seed": -1}}, "'corrupt.seed' is -1"),
        ({"train": 3}, "'train' is 3, but must be a section of keys"),
        ({"dataset": {}}, "'dataset.path' is missing"),
        ({"dataset": 3}, "'dataset' is 3, but must be a section of keys"),
        ({"dataset": {"path": "d", "gruop": "x"}}, "'dataset.gruop'; did you mean 'group'?"),
        (
            {"dataset": {"path": "d", "layout": "mstcn", "splt": 1}},
            "unknown key 'dataset.splt'; did you mean 'split'?",
        ),
        (
            {"dataset": {"path": "d", "layout": "coco"}},
            "'dataset.layout' is 'coco', but the layouts are manifest, cholec80, egoper, mstcn, "
            "activitynet",
        ),
        (
            {"dataset": {"path": "d", "layout": "cholec80", "task": "tea"}},
            "dataset.task belongs to the layout egoper, but this is cholec80",
        ),
        (
            {"dataset": {"path": "d", "media": "m"}},
            "dataset.media belongs to the layout activitynet, but this is manifest",
        ),
        (
            {"dataset": {"path": "d", "splits": "tecno"}},
            "dataset.splits: 'tecno' is neither `own` nor lists of ids (train, val, audit); the "
            "names paper, tecno and tmrnet belong to the layout cholec80",
        ),
        (
            {"dataset": {"path": "d", "layout": "cholec80", "splits": "papr"}},
            "dataset.splits: 'papr' is neither one of own, paper, tecno, tmrnet nor lists of ids",
        ),
        (
            {"dataset": {"path": "d", "splits": {"trian": ["a"]}}},
            "unknown key 'dataset.splits.trian'; did you mean 'train'?",
        ),
        ({"dataset": {"path": "d", "splits": {"val": 3}}}, "'dataset.splits.val' is 3"),
        (
            {"features": {"adapt": {"epoch": 3}}},
            "unknown key 'features.adapt.epoch'; did you mean 'epochs'?",
        ),
        ({"scorers": {}}, "at least one scorer is needed"),
        ({"flag": {"scorer": "x"}}, "flag.scorer is 'x', but the scorers are transformer"),
    ],
)
def test_bad_config_is_refused_in_a_sentence(sections: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(**sections)
    assert str(caught.value).startswith("c.yaml: ")
    assert sentence in str(caught.value)


def test_two_mistakes_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"'train\.epoch'.*'flag\.ruel'"):
        parse(train={"epoch": 3}, flag={"ruel": "top"})


def test_exponent_without_a_dot_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("root: r\ndataset: {path: d}\ntrain: {learning_rate: 1e-3}\n")
    assert load_config(path).train.learning_rate == 1e-3


def test_set_overrides_values_and_makes_sections(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("root: r\ndataset: {path: d}\ntrain:\n")
    config = load_config(path, ["train.epochs=5", "scorers.only.model=framewise"])
    assert config.train == TrainConfig(epochs=5)
    assert config.scorers["only"].model == "framewise"


@pytest.mark.parametrize("override", ["train.epochs", "=3", "root.x=1", "train.epochs=[1"])
def test_set_of_the_wrong_form_is_refused(override: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        set_value({"root": "r"}, override)


def test_local_paths_become_absolute_and_urls_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text("root: s3://b/r\ndataset: {path: d}\nfeatures: {weights: w.pt}\n")
    config = load_config("c.yaml")
    assert config.root == "s3://b/r"
    assert config.dataset.path == str(tmp_path / "d")
    assert config.features.weights == str(tmp_path / "w.pt")


@pytest.mark.parametrize("text", ["a: [", "- a", ""])
def test_file_that_is_not_a_mapping_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"c\.yaml"):
        load_config(path)


def test_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"root: \xff\xfe")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load_config(path)


def test_missing_file_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"can't read the config no\.yaml"):
        load_config("no.yaml")


@pytest.mark.parametrize("value", ["every_3rd", [], [0], 5])
def test_unknown_checkpoint_strategy_is_one_sentence(value: object) -> None:
    data = {"root": "r", "dataset": {"path": "p"}, "score": {"checkpoints": value}}
    with pytest.raises(ConfigError) as caught:
        parse_config(data, where="c.yaml")
    assert str(caught.value) == (
        f"c.yaml: score.checkpoints: {value!r} is neither one of full, every_2nd, every_5th, "
        "every_10th, hybrid, last nor a list of epochs"
    )


def test_score_that_there_is_not_gets_the_nearest_name() -> None:
    data = {"root": "r", "dataset": {"path": "p"}, "flag": {"score": "margin_smooth"}}
    with pytest.raises(ConfigError, match="did you mean 'margin_smoothed'"):
        parse_config(data, where="c.yaml")


def test_ensemble_may_decide_but_can_not_be_trained() -> None:
    data = {"root": "r", "dataset": {"path": "p"}}
    assert parse_config({**data, "flag": {"scorer": "ensemble"}}, where="c").flag.scorer
    with pytest.raises(ConfigError, match="name of several of them together"):
        parse_config({**data, "scorers": {"ensemble": {"model": "framewise"}}}, where="c")
