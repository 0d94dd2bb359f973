"""Rates travel between machines as a file."""

from pathlib import Path

import pytest

from csl_dist.cost.rates import Rates, StageRate, read_rates, write_rates
from csl_dist.errors import ConfigError

RATES = Rates(
    device="a GPU",
    on_gpu=True,
    stages={"audit framewise": StageRate(flops_per_second=2e12, num_frames=512)},
    decoded_per_cpu=100.0,
)


def test_rates_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_rates(RATES, tmp_path / "rates.json")
    assert read_rates(tmp_path / "rates.json") == RATES


def test_stage_that_was_not_measured_is_named() -> None:
    with pytest.raises(ConfigError, match="no rate was measured for 'train framewise', only for a"):
        RATES.flops_per_second("train framewise")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        ("no", "holds no rates .*JSON"),
        ('{"device": "a GPU"}', "holds no rates .on_gpu: Field required"),
        (
            '{"device": "d", "on_gpu": true, "stages": {}, "decoded_per_cpu": 0}',
            "decoded_per_cpu.*: Input should be greater than 0",
        ),
    ],
)
def test_file_without_rates_is_refused(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "rates.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=words):
        read_rates(path)
