import pytest

from csl_dist.errors import ConfigError
from csl_dist.strategies import first_late, selected_epochs

EPOCHS = range(1, 201)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("full", list(EPOCHS)),
        ("every_2nd", [e for e in EPOCHS if e % 2 == 0]),
        ("every_5th", [e for e in EPOCHS if e % 5 == 0]),
        ("every_10th", [e for e in EPOCHS if e % 10 == 0]),
        ("last", [200]),
        ((7, 3), [3, 7]),
        ("hybrid", [e for e in EPOCHS if (e % 2 == 0 if e <= 50 else e % 5 == 0)]),
    ],
)
def test_strategies_of_200_epochs_are_the_papers(strategy, expected: list[int]) -> None:
    assert selected_epochs(EPOCHS, strategy) == expected


@pytest.mark.parametrize("strategy", ["every_2nd", "every_5th", "every_10th", "hybrid", "last"])
def test_short_training_keeps_its_last_checkpoint(strategy) -> None:
    assert selected_epochs([1], strategy) == [1]
    assert selected_epochs([], strategy) == []


def test_list_with_an_epoch_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="epochs 9 are selected, but there are only 1 to 4"):
        selected_epochs([1, 2, 3, 4], (2, 9))


def test_unknown_strategy_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="no strategy 'every_3rd'; did you mean 'every_"):
        selected_epochs([1, 2, 3], "every_3rd")  # type: ignore[arg-type]


@pytest.mark.parametrize("num_epochs", [1, 2, 5, 16, 31])
def test_later_half_of_a_whole_training_is_that_of_its_rows(num_epochs: int) -> None:
    epochs = list(range(1, num_epochs + 1))
    assert epochs[first_late(epochs) :] == epochs[num_epochs // 2 :]


def test_later_half_of_some_checkpoints_is_by_their_epochs() -> None:
    assert first_late([10, 16]) == 0
    assert first_late([5, 10, 15, 16]) == 1
