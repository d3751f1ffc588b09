"""
Shuffled messages: many clients hide each other
===============================================

A shuffler removes senders and order before the server sees the messages. Each message may then reveal more by itself than all clients together
promise. This program compares two ways to use a shuffler with messages that
are not shuffled.
"""

# %%
# Each of 10,000 clients holds a vector of 64 coordinates in the L2 unit ball. All messages together keep epsilon 1 at delta 1e-6.

import matplotlib.pyplot as plt

import quietbits

ball = quietbits.NormBall(dimension=64, norm=2.0)
task = quietbits.Task(ball, clients=10_000, epsilon=1.0, delta=1e-6, adjacency="replace-one")

# %%
# A shuffled code sends the number of a close point of a public random codebook, and the codebook's number. Longer messages name more
# codebooks, so that fewer clients share the error of one. Split and mix sends several random shares of a secure sum's message instead: its
# error is much smaller, and its messages are much longer.

codes = [
    quietbits.build_mechanism("shuffled-rotating-simplex", task, {"message_bits": bits})
    for bits in (10, 13, 16, 19)
]
shares = quietbits.build_mechanism("split-and-mix", task)
for mechanism in (*codes, shares):
    print(f"{mechanism.bits_per_client:g} bits: {mechanism.guarantee}")
print(f"a single message of the code by itself: epsilon {codes[-1].local_epsilon:.2f}")

# %%
# Without a shuffler each message must keep epsilon 1 by itself. The figure shows the largest expected error of the mean.

alone = quietbits.build_mechanism(
    "rotating-simplex",
    quietbits.Task(ball, clients=10_000, epsilon=1.0, delta=0.0, adjacency="replace-one"),
)
gain = alone.error().of_mean(task.clients) / codes[-1].error().of_mean(task.clients)
print(f"the longest code has {gain:.0f} times less error than messages without a shuffler")
compared = {
    "shuffled code": codes,
    "split and mix": [shares],
    "no shuffler: rotating simplex": [alone],
}
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name, mechanisms in compared.items():
    axes.plot(
        [mechanism.bits_per_client for mechanism in mechanisms],
        [mechanism.error().of_mean(task.clients) for mechanism in mechanisms],
        "o-",
        label=name,
    )
axes.set(
    xlabel="bits of a client", ylabel="largest expected squared error", xscale="log", yscale="log"
)
axes.legend()
plt.show()
