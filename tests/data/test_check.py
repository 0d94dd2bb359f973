"""A folder with twelve different problems: `csl check` names all of them in one run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builder import MadeVideo, write_manifest
from layout_files import touch

from csl_dist.config import (
    ColumnsConfig,
    CorruptConfig,
    ManifestConfig,
    RunConfig,
    SegmentsConfig,
)
from csl_dist.data.check import (
    VideoFacts,
    all_problems,
    doubtful_rate,
    exchanged_labels,
    lone_classes,
    look_at_videos,
    orientation,
    summaries,
    trimmed,
)
from csl_dist.data.content import Contents
from csl_dist.data.layouts import open_dataset, read_dataset
from csl_dist.errors import DataError
from csl_dist.features.brought import ready_features
from csl_dist.types import Media, Split, Timeline, Video

NUM_FRAMES = 20


def write_folder(root: Path) -> dict[str, np.ndarray]:
    """Twelve good videos of ready features; returns the features by id."""
    rng = np.random.default_rng(0)
    arrays = {f"v{i:02d}": rng.normal(size=(NUM_FRAMES, 6)).astype(np.float32) for i in range(12)}
    videos = [
        MadeVideo(
            id=name,
            split="audit" if name >= "v09" else "train",
            names_T=["a"] * 10 + ["b"] * 10,
            features_TD=features_TD,
        )
        for name, features_TD in arrays.items()
    ]
    write_manifest(root, videos, fps=10, classes=("a", "b"))
    return arrays


def found_problems(root: Path, **changes: object) -> list[str]:
    config = config_of(root, **changes)
    dataset = read_dataset(config.dataset)
    return all_problems(dataset, list(look_at_videos(dataset, config.dataset)), config)


def config_of(root: Path, corrupt: CorruptConfig | None = None, **changes: object) -> RunConfig:
    dataset = ManifestConfig(path=str(root), **changes)  # type: ignore[arg-type]
    return RunConfig(root=str(root / "run"), dataset=dataset, corrupt=corrupt or CorruptConfig())


def test_good_folder_has_no_problem_and_a_summary(tmp_path: Path) -> None:
    arrays = write_folder(tmp_path)
    np.save(tmp_path / "v03.npy", arrays["v03"].T)
    config = config_of(tmp_path)
    dataset = read_dataset(config.dataset)
    facts = list(look_at_videos(dataset, config.dataset))
    assert all_problems(dataset, facts, config) == []
    train, audit = summaries(dataset, facts)
    assert (train.num_videos, train.num_frames, train.class_frames_C) == (9, 180, (90, 90))
    assert audit.hours == pytest.approx(3 * 2 / 3600)
    assert orientation(facts) == (
        "features: 11 files are (frames, width), 1 are (width, frames), decided by the number "
        "of labels"
    )


def test_twelve_problems_are_all_named_in_one_run(tmp_path: Path) -> None:
    arrays = write_folder(tmp_path)
    manifest = tmp_path / "manifest.csv"
    text = manifest.read_text()
    # 1 a class name that does not exist, 2 too few labels, 3 a label file that is not there
    (tmp_path / "v00.txt").write_text("a\n" * 12 + "typo\n" + "b\n" * 7)
    (tmp_path / "v01.txt").write_text("a\n" * 17)
    (tmp_path / "v02.txt").unlink()
    # 4 NaN, 5 constant, 6 narrower than the others, 7 an array that fits neither way round
    arrays["v03"][5, 2] = np.nan
    np.save(tmp_path / "v03.npy", arrays["v03"])
    np.save(tmp_path / "v04.npy", np.ones((NUM_FRAMES, 6), dtype=np.float32))
    np.save(tmp_path / "v05.npy", arrays["v05"][:, :4])
    np.save(tmp_path / "v06.npy", np.zeros((7, 9), dtype=np.float32))
    # 8 an empty video, 9 a video that can't be decoded
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "noise.mp4").write_bytes(np.random.default_rng(1).bytes(5000))
    text = text.replace("v07,v07.npy", "v07,empty.mp4").replace("v08,v08.npy", "v08,noise.mp4")
    # 10 the same id in two splits, 11 a split that does not exist, 12 a class never trained on
    text += "v09,v09.npy,v09.txt,train,10\nv20,v09.npy,v09.txt,test,10\n"
    (tmp_path / "classes.txt").write_text("a\nb\nunseen\n")
    manifest.write_text(text)
    problems = found_problems(tmp_path)
    expected = [
        "v00.txt:13: unknown class 'typo'; the classes are a, b, unseen",
        "v01.npy: features are 20 x 6, but the labels have 17 frames",
        "v02.txt: No such file",
        "v03.npy: the features of frame 5 are NaN or infinite",
        "v04.npy: features are the same in every frame",
        "v05.npy: features are 4 wide, but 6 in most other videos",
        "v06.npy: features are 7 x 9",
        "can't open the video",
        "noise.mp4",
        "video 'v09' is listed in the splits audit and train; keep one",
        "manifest.csv:15: split is 'test', expected train, val, audit",
        "class 'unseen' never occurs in training",
        # What follows from the two videos among features is said as well.
        "some videos have ready features and others do not",
    ]
    for words in expected:
        assert any(words in problem for problem in problems), words
    assert len(problems) == len(expected)


def test_everything_but_check_refuses_a_list_with_problems(tmp_path: Path) -> None:
    write_folder(tmp_path)
    manifest = tmp_path / "manifest.csv"
    manifest.write_text(manifest.read_text() + "x,x.npy,x.txt,test,10\ny,y.npy,y.txt,train,no\n")
    with pytest.raises(DataError, match="split is 'test'.*1 more problem; `csl check` lists"):
        open_dataset(ManifestConfig(path=str(tmp_path)))


def test_trimming_makes_small_differences_of_length_acceptable(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "v01.txt").write_text("a\n" * 10 + "b\n" * 9)
    assert len(found_problems(tmp_path)) == 1
    assert found_problems(tmp_path, length_mismatch="trim") == []


def test_dataset_without_training_or_audit_videos_is_a_problem(tmp_path: Path) -> None:
    write_folder(tmp_path)
    manifest = tmp_path / "manifest.csv"
    text = manifest.read_text()
    manifest.write_text(text.replace(",train,", ",audit,"))
    assert any("no training videos" in p for p in found_problems(tmp_path))
    manifest.write_text(text.replace(",audit,", ",train,"))
    assert any("no videos to audit" in p for p in found_problems(tmp_path))


def test_class_that_one_fold_never_trains_on_is_a_problem(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "classes.txt").write_text("a\nb\nrare\n")
    fold = open_dataset(config_of(tmp_path, folds=3).dataset).folds[0]
    for video in fold.held_out[:2]:
        (tmp_path / f"{video}.txt").write_text("a\n" * 10 + "rare\n" * 10)
    [problem] = found_problems(tmp_path, folds=3)
    assert problem == (
        f"class 'rare' never occurs in training of fold {fold.index}; no checkpoint can know it; "
        "another dataset.fold_seed may help"
    )


def test_class_of_one_video_alone_is_a_note_where_there_are_folds(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "classes.txt").write_text("a\nb\nrare\n")
    (tmp_path / "v00.txt").write_text("a\n" * 10 + "rare\n" * 10)
    assert found_problems(tmp_path, folds=3) == []
    config = config_of(tmp_path, folds=3).dataset
    dataset = open_dataset(config)
    note = lone_classes(dataset, list(look_at_videos(dataset, config)))
    assert note is not None
    assert note.startswith("classes of one person or video alone: 'rare' (v00); ")


def test_class_of_one_video_that_is_nearly_another_is_asked_about(tmp_path: Path) -> None:
    write_folder(tmp_path)
    for name, label in (("v00", "cut breed"), ("v01", "cut bread"), ("v02", "cut bread")):
        (tmp_path / f"{name}.txt").write_text("a\n" * 10 + f"{label}\n" * 10)
    (tmp_path / "v03.txt").write_text("a\n" * 10 + "cut bread 2\n" * 10)
    (tmp_path / "classes.txt").write_text("a\nb\ncut bread\ncut breed\ncut bread 2\n")
    config = config_of(tmp_path, folds=3).dataset
    dataset = open_dataset(config)
    note = lone_classes(dataset, list(look_at_videos(dataset, config)))
    assert note is not None
    assert note.endswith("where they stand; is 'cut breed' a slip of 'cut bread'?")


def test_errors_that_can_not_be_planted_or_read_are_problems(tmp_path: Path) -> None:
    write_folder(tmp_path)
    for name in ("v09", "v10", "v11"):
        (tmp_path / f"{name}.txt").write_text("a\n" * NUM_FRAMES)
    problems = found_problems(tmp_path, corrupt=CorruptConfig(audit={"disorder": 1}))
    assert len(problems) == 3
    assert "no disorder can be planted in video 'v" in problems[0]
    [problem] = found_problems(tmp_path, truth=str(tmp_path / "no.csv"))
    assert "can't read the known errors" in problem


def test_classes_that_differ_only_in_case_are_a_problem(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "classes.txt").write_text("a\nb\nA\nstep  1\nStep 1\n")
    found = [problem for problem in found_problems(tmp_path) if "differ only" in problem]
    assert [problem.split(" differ")[0] for problem in found] == [
        "classes 'a', 'A'",
        "classes 'step  1', 'Step 1'",
    ]


def test_dataset_of_one_class_is_a_problem(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "classes.txt").unlink()
    for file in tmp_path.glob("v*.txt"):
        file.write_text("a\n" * NUM_FRAMES)
    [problem] = found_problems(tmp_path)
    assert problem.startswith("all labels are 'a'; with a single class")


def test_every_overlap_is_named_with_file_line_and_seconds(tmp_path: Path) -> None:
    rows = ["video,start,end,label", "v,0,2,cut", "v,1,3,stir", "v,3,5,cut", "v,4,6,stir"]
    table = touch(tmp_path / "labels.csv", "\n".join(rows) + "\n")
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(60, 4)))
    columns = ColumnsConfig(video="video", start="start", stop="end", label="label")
    config = SegmentsConfig(path=str(table), columns=columns, features_fps=10)
    [found] = look_at_videos(read_dataset(config), config)
    first, second = found.problems
    assert first.startswith(
        f"{table}:3: video 'v': 'stir' (1.00 to 3.00 s) starts inside 'cut' (0.00 to 2.00 s) of "
        "line 2; correct it, or set dataset.overlap: first, last or longest"
    )
    assert second == (
        f"{table}:5: video 'v': 'stir' (4.00 to 6.00 s) starts inside 'cut' (3.00 to 5.00 s) of "
        "line 4"
    )
    settled = replace(config, overlap="longest")
    [found] = look_at_videos(read_dataset(settled), settled)
    assert found.problems == ()


def write_exchanged(root: Path) -> None:
    """Twelve videos, each a frame longer than the one before; two have each other's labels."""
    videos = []
    for i, labelled in enumerate([0, 1, 2, 9, 4, 5, 6, 7, 8, 3, 10, 11]):
        rng = np.random.default_rng(i)
        features_TD = rng.normal(size=(NUM_FRAMES + 2 * i, 6)).astype(np.float32)
        names_T = ["a"] * 10 + ["b"] * (NUM_FRAMES + 2 * labelled - 10)
        split = "audit" if i >= 9 else "train"
        videos.append(
            MadeVideo(id=f"v{i:02d}", split=split, names_T=names_T, features_TD=features_TD)
        )
    write_manifest(root, videos, fps=10, classes=("a", "b"))


def test_exchanged_label_files_are_one_problem_that_run_refuses_too(tmp_path: Path) -> None:
    write_exchanged(tmp_path)
    [problem] = found_problems(tmp_path)
    assert problem.startswith(
        "the labels of 'v03' (38 frames) are as long as the features of 'v09'"
    )
    assert "were the two label files exchanged?" in problem
    assert "trim" not in problem
    config = config_of(tmp_path).dataset
    with pytest.raises(DataError, match="were the two label files exchanged"):
        ready_features(open_dataset(config), config, Contents())


def test_run_refuses_features_that_do_not_fit_with_how_many_more_there_are(tmp_path: Path) -> None:
    for name, features_TD in write_folder(tmp_path).items():
        if name < "v03":
            np.save(tmp_path / f"{name}.npy", features_TD[:10])
    config = config_of(tmp_path).dataset
    with pytest.raises(DataError, match=r"fits neither axis.*2 more problems; `csl check` lists"):
        ready_features(open_dataset(config), config, Contents())


def test_labels_that_fit_two_other_videos_are_not_called_exchanged(tmp_path: Path) -> None:
    write_exchanged(tmp_path)
    (tmp_path / "v05.txt").write_text("a\n" * 26)
    np.save(tmp_path / "v05.npy", np.random.default_rng(5).normal(size=(38, 6)))
    problems = found_problems(tmp_path)
    assert len(problems) == 3
    assert all("fits neither axis" in problem for problem in problems)


def test_label_files_that_are_trimmed_are_told_and_so_is_an_exchange(tmp_path: Path) -> None:
    lengths = [200 + 4 * i for i in range(12)]
    labelled = [lengths[1], lengths[0], *lengths[2:]]
    rng = np.random.default_rng(0)
    videos = [
        MadeVideo(
            id=f"v{i:02d}",
            split="train",
            names_T=["a"] * 100 + ["b"] * (own - 100),
            features_TD=rng.normal(size=(length, 6)).astype(np.float32),
        )
        for i, (length, own) in enumerate(zip(lengths, labelled, strict=True))
    ]
    write_manifest(tmp_path, videos, fps=10, classes=("a", "b"))
    config = config_of(tmp_path, length_mismatch="trim").dataset
    facts = list(look_at_videos(read_dataset(config), config))
    assert [found.problems for found in facts if found.problems] == []
    assert trimmed(facts) == (
        "trimmed: 2 of 12 videos have more labels than frames or fewer, by 2.0% at most ('v00': "
        "204 labels but 200 frames at 10 fps)"
    )
    [told] = exchanged_labels(facts)
    assert told.startswith("exchanged? The labels of 'v00' end with the video of 'v01', at 20.4 s")


def write_table(root: Path, *, num_videos: int = 3) -> SegmentsConfig:
    """Videos of 20 and more seconds with ten features a second, and one table of segments."""
    rows = ["video,start,end,label"]
    rng = np.random.default_rng(0)
    for i in range(num_videos):
        seconds = 20 + i
        rows += [f"v{i},0,10,cut", f"v{i},10,{seconds - 1},stir"]
        np.save(root / f"v{i}.npy", rng.normal(size=(10 * seconds, 4)))
    table = touch(root / "labels.csv", "\n".join(rows) + "\n")
    columns = ColumnsConfig(video="video", start="start", stop="end", label="label")
    return SegmentsConfig(path=str(table), columns=columns, folds=3)


def test_features_beside_labels_with_times_need_a_rate(tmp_path: Path) -> None:
    config = write_table(tmp_path)
    with pytest.raises(DataError, match=r"how many features a second .*set dataset.features_fps"):
        read_dataset(config)


def test_features_that_last_much_longer_than_their_labels_are_doubted(tmp_path: Path) -> None:
    config = write_table(tmp_path)
    for fps, doubted in ((10, False), (5, True)):
        told = replace(config, features_fps=fps)
        note = doubtful_rate(list(look_at_videos(read_dataset(told), told)))
        assert (note is not None) == doubted
    assert note is not None
    assert note.startswith("rate: labels end at 48% of the length")
    assert "there really 5 frames or features a second?" in note


def test_labels_that_end_with_each_others_video_are_told(tmp_path: Path) -> None:
    lengths = [20.0 + i for i in range(12)]

    def facts(ends: list[float]) -> list[VideoFacts]:
        return [
            VideoFacts(
                video=Video(id=f"v{i}", source="", labels="", split=Split.AUDIT, media=Media.VIDEO),
                timeline=Timeline(times_T=np.arange(2.0), duration=length, source_fps=25),
                labels_end=end,
            )
            for i, (length, end) in enumerate(zip(lengths, ends, strict=True))
        ]

    assert list(exchanged_labels(facts(lengths))) == []
    swapped = [lengths[1], lengths[0], *lengths[2:]]
    assert list(exchanged_labels(facts(swapped))) == [
        "exchanged? The labels of 'v0' end with the video of 'v1', at 21.0 s, and the other way "
        "round, at 20.0 s; 10 of 12 videos end with their own labels"
    ]
    assert list(exchanged_labels(facts([lengths[0] - 5, *lengths[1:]]))) == []
    assert list(exchanged_labels(facts([end - 3 for end in lengths]))) == []
