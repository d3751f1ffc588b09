"""What happens to updates before a mechanism encodes them: clipping by layers, and clip norms that change from round to round."""

from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray
from ...design.federated.model_layers import ModelLayers


@dataclass(frozen=True)
class LayerClipping:
    """Each layer is clipped to its share of a clip norm: squares of the shares are proportional to sizes, and add up to that of the whole.

    Attributes
    ----------
    layers : ModelLayers
        Of the model.
    clip_norm : float
        L2 norm of a clipped update, at most.

    Examples
    --------
    >>> from quietbits.design.federated.model_layers import dense
    >>> clipping = LayerClipping(ModelLayers("small", (dense(1, 2), dense(11, 1))), 2.0)
    >>> clipping.norms, float(np.linalg.norm(clipping.clip(np.full((1, 16), 9.0))).round(12))
    ((1.0, 1.7320508075688772), 2.0)
    """

    layers: ModelLayers
    clip_norm: float

    @property
    def norms(self) -> tuple[float, ...]:
        """Clip norm of each layer."""
        return tuple(self.clip_norm * (size / self.layers.dimension) ** 0.5 for size in self.layers.sizes)

    def clip(self, updates: FloatArray) -> FloatArray:
        """Clip updates, shape (clients, dimension), in place, and return them."""
        for place, norm in zip(self.layers.places, self.norms, strict=True):
            part = updates[:, place]
            part /= np.maximum(np.linalg.norm(part, axis=1) / norm, 1.0)[:, None]
        return updates
