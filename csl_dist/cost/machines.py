"""Machines: the GPUs, or cores, that a run is planned for, with what they reach and cost."""

from dataclasses import dataclass

from csl_dist.cost.rates import Rates
from csl_dist.words import counted

DECODED_PER_CPU = 120.0
"""Frames that a core decodes and fits in a second: `python benchmarks/decode.py --frames 500`."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A kind of GPU: dense bf16 (T4, V100: fp16) peak, and what an hour of one costs."""

    peak_tflops: float
    dollars: float


GPUS = {
    "t4": Gpu(65, 0.75),  # g4dn.2xlarge
    "v100": Gpu(125, 3.06),  # p3.2xlarge
    "l4": Gpu(121, 0.98),  # g6.2xlarge
    "a10g": Gpu(70, 1.21),  # g5.2xlarge
    "a100": Gpu(312, 2.74),  # p4d.24xlarge, 21.96 for eight
    "h100": Gpu(989, 6.88),  # p5.48xlarge, 55.04 for eight
}
"""Peaks without sparsity, and dollars for an hour on demand in us-east-1 of a machine with about
eight CPUs a GPU, as of 2026; spot is about a third. NVIDIA's data sheets and AWS's price list were
not at hand: peaks agree with hmc-tech.com's comparisons (A100; L4 within 4 %) and with tables in
public training code (all six); prices with tables in public cost tools, which have P4d and P5 after
AWS's cut of June 2025 (usage.ai, LLM Cost Optimization on AWS, 2026, tells of it). Check a price
that matters, and give it as --price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """What there is to do it with."""

    num_gpus: int
    """Or cores, where rates were measured on one."""
    gpu: Gpu
    utilisation: float
    """Share of the peak that is reached, where that was not measured."""
    cpus_per_gpu: int
    rates: Rates | None = None

    @property
    def on_cores(self) -> bool:
        """Whether there are no GPUs, so that cores do everything."""
        return self.rates is not None and not self.rates.on_gpu

    @property
    def num_cpus(self) -> int:
        """Cores that decode."""
        return self.num_gpus * (1 if self.on_cores else self.cpus_per_gpu)

    @property
    def decoded_per_cpu(self) -> float:
        measured = self.rates.decoded_per_cpu if self.rates is not None else None
        return measured or DECODED_PER_CPU

    def flops_per_second(self, stage: str) -> float:
        """Of one GPU."""
        if self.rates is not None:
            return self.rates.flops_per_second(stage)
        return self.gpu.peak_tflops * 1e12 * self.utilisation

    def named(self, num_busy: int) -> str:
        return counted(num_busy, "core" if self.on_cores else "GPU")
