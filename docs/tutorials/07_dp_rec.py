"""
DP-REC: a message of a few bytes
================================

Instead of a noisy vector, a client sends the number of a shared random sample that could have come from its vector.
"""

# %%
# The update has 1,000 coordinates in four groups. Each group takes seven bits, and the message has a seed as well.

import matplotlib.pyplot as plt
import numpy as np

import quietbits

ball = quietbits.NormBall(dimension=1000, norm=2.0)
mechanism = quietbits.DpRecMechanism(
    ball, clip_ratio=1.0, layout=quietbits.uniform_layout(1000, groups=4, group_bits=7)
)
rng = np.random.default_rng(0)
vector = rng.normal(size=1000)
vector /= np.linalg.norm(vector)
message = mechanism.encode(vector[None], rng)
print(f"{message.shape[1]} bytes instead of {vector.nbytes}")

# %%
# Many clients with nearly the same update agree on its direction. The samples are noise of standard deviation 1 in each coordinate, and
# the mean over clients reduces it.

clients = [50, 200, 800]
errors = []
for number in clients:
    decoded = mechanism.decode(
        mechanism.aggregate(mechanism.encode(np.tile(vector, (number, 1)), rng)), number
    )
    errors.append(np.sum((decoded - vector) ** 2))
    print(
        f"{number} clients: squared error {errors[-1]:.3f}, predicted {mechanism.error().of_mean(number):.3f}"
    )

# %%
# The privacy of a training depends on rounds and on the sampling of clients. All accounts but ``message`` are against those who see the
# models; ``message`` is against the server, which sees every message.

training = {"clip_ratio": 0.5, "population": 3500, "clients_per_round": 100, "index_bits": 28}
account = quietbits.account("dp-rec", delta=1e-4, rounds=1000, **training)
for row in account.privacy.accounts:
    print(
        f"{row.name}: epsilon {row.bound.epsilon:.3g}, {row.adjacency}, {'assumes nothing' if row.assumes is None else 'has assumptions'}"
    )

# %%
# The figure shows the error of the mean beside the error that the mechanism states.

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.plot(clients, errors, "o", label="one round")
axes.plot(
    clients,
    [mechanism.error().of_mean(number) for number in clients],
    "-",
    label="stated, for the worst vector",
)
axes.set(xlabel="clients", ylabel="squared error of the mean", xscale="log", yscale="log")
axes.legend()
plt.show()
