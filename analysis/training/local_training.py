"""What clients do with the server's model: a gradient, or a few epochs of gradient steps, for many clients at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray, IntegerArray
from ..datasets.federated_data import Cohort, FederatedData
from .network import Network

# Numbers of a chunk: of the clients' updates, or of their examples if these are more.
CHUNK_NUMBERS = 2**21


@dataclass(frozen=True)
class LocalTraining:
    """Gradient steps of a client.

    Attributes
    ----------
    epochs : int
        Passes over the client's examples; 0: its update is the negative gradient of their mean loss at the server's model.
    batch : int or None
        Examples of a step; None for all.
    learning_rate : float
        Of each step.
    """

    epochs: int = 0
    batch: int | None = None
    learning_rate: float = 0.1

    def updates(self, network: Network, parameters: FloatArray, cohort: Cohort, rng: np.random.Generator) -> FloatArray:
        """Return how far each client moves the model, shape (clients, dimension): zeros where it has no examples.

        `rng` shuffles examples, where epochs have several batches.
        """
        sizes = cohort.sizes
        starts = np.cumsum(sizes) - sizes
        found = np.zeros((len(sizes), len(parameters)))
        # Clients with the same number of examples are computed together.
        for size in np.unique(sizes[sizes > 0]).tolist():
            own = np.flatnonzero(sizes == size)
            places = starts[own][:, None] + np.arange(size)
            inputs, labels = cohort.examples.inputs[places], cohort.examples.labels[places]
            updates = self._of_size(network, parameters, inputs, labels, rng)
            if len(own) == len(sizes):
                return updates
            found[own] = updates
        return found

    def _of_size(
        self, network: Network, parameters: FloatArray, inputs: FloatArray, labels: IntegerArray, rng: np.random.Generator
    ) -> FloatArray:
        if self.epochs == 0:
            found = network.gradients(parameters, inputs, labels)
            return np.negative(found, out=found)
        clients, size = inputs.shape[:2]
        batch = size if self.batch is None else min(self.batch, size)
        # The same for all until the first step.
        models = parameters
        for _ in range(self.epochs):
            order = np.tile(np.arange(size), (clients, 1))
            if batch < size:
                order = rng.permuted(order, axis=1)
            for start in range(0, size, batch):
                chosen = np.arange(clients)[:, None], order[:, start : start + batch]
                models = models - self.learning_rate * network.gradients(models, inputs[chosen], labels[chosen])
        return models - parameters


def update_chunks(
    local: LocalTraining, network: Network, parameters: FloatArray, data: FederatedData, clients: IntegerArray, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Return the updates of clients, made when they are asked for, in chunks whose size depends on the dimensions only."""
    size = max(1, CHUNK_NUMBERS // max(len(parameters), data.features))
    for start in range(0, len(clients), size):
        yield local.updates(network, parameters, data.cohort(clients[start : start + size]), rng)
