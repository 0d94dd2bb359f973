"""RunLayout: every path under a run root, and the version of that format."""

from csl_dist.storage import Storage, key_part

FORMAT_VERSION = 1


class RunLayout:
    """Where a run keeps what it produces."""

    RUN = "run.json"
    FLAGS = "flags.parquet"
    METRICS = "metrics.json"
    TRAINING = "training.json"
    """In a fold: which of its trainings was asked for last."""
    REPORT = "report.html"
    RESERVED = ("features.zarr", "scores.zarr", "records", "tensorboard")
    """Folders of the root that a scorer can't be named after."""

    def __init__(self, root: Storage):
        self.root = root

    def __repr__(self) -> str:
        return f"RunLayout({self.root.url!r})"

    @property
    def features(self) -> Storage:
        return self.root.child("features.zarr")

    @property
    def scores(self) -> Storage:
        return self.root.child("scores.zarr")

    @property
    def tensorboard(self) -> Storage:
        """Event files, where the config asks for them."""
        return self.root.child("tensorboard")

    def scorer(self, name: str) -> Storage:
        """Rows and trajectories of one scorer."""
        return self.root.child(key_part(name))

    def fold(self, scorer: str, fold: int) -> Storage:
        return self.scorer(scorer).child(f"fold-{fold}")

    def checkpoints(self, scorer: str, fold: int, training: str) -> Storage:
        """Checkpoints of one training; another one, say at another learning rate, lies beside."""
        return self.fold(scorer, fold).child(f"checkpoints/{training}")
