"""Place: where the frames of a batch lie in their videos."""

from typing import NamedTuple

from torch import Tensor


class Place(NamedTuple):
    """Frame numbers within the whole video, and the video's length; a window keeps both."""

    index_BT: Tensor
    length_B: Tensor

    def share_BT(self) -> Tensor:
        """How much of the video has passed: 0 at its start, towards 1 at its end."""
        return self.index_BT / self.length_B[:, None]
