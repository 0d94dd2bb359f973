"""Label files that changed places."""

import numpy as np

from csl_dist.flag.edits.files import best_files, file_gains


def test_two_files_that_changed_places_are_found():
    rng = np.random.default_rng(0)
    labels = {name: np.repeat(rng.permutation(6), 10) for name in "abcde"}
    logp = {name: np.log(0.02 + 0.88 * np.eye(6)[labels_T]) for name, labels_T in labels.items()}
    labels["a"], labels["b"] = labels["b"], labels["a"]
    gains = {name: file_gains(name, logp[name], labels) for name in labels}
    matches = best_files(gains)
    assert matches["a"].other == "b"
    assert matches["a"].takes_back
    assert gains["b"]["a"] > 0
    assert all(max(gains[name].values()) < 0 for name in "cde")


def test_files_of_other_lengths_are_not_compared():
    labels = {"a": np.zeros(10, dtype=int), "b": np.zeros(100, dtype=int)}
    assert file_gains("a", np.zeros((10, 2)), labels) == {}
    assert file_gains("b", np.zeros((100, 2)), labels) == {}


def test_files_that_fit_better_by_chance_are_not_named() -> None:
    slight = {"a": {"b": 0.1, "c": -1.0}, "b": {"a": 0.15}, "c": {}}
    assert not best_files(slight)["a"].takes_back
    one_sided = {"a": {"b": 0.9}, "b": {"a": 0.4, "c": 0.8}, "c": {"b": 0.7}}
    found = best_files(one_sided)
    assert [found[video].takes_back for video in "abc"] == [False, True, True]
