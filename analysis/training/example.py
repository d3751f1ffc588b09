"""A grid of trainings that runs in under a minute, as a file to begin with."""

EXAMPLE = """\
# A grid of trainings: quietbits train FILE --output DIR
# Every key takes one value or a list; lists stand for all combinations. What is commented out has the value that is shown.

# Data: scikit-learn's digits, each image with a client of its own.
data = "digits"
clients = 1442
# split = "iid"                # or "dirichlet", with alpha = 1.0
# samples = "none"             # images of a client, each deformed: there is no end to them, and clients may be millions

# Model: "softmax", "mlp-60-60-60" (widths of hidden layers) or "cnn-8-32" (channels, widths).
model = "softmax"

# Rounds. "fixed": that many different clients; or "poisson", "with-replacement", "passes" (all clients in turn).
sampling = "fixed"
clients_per_round = 600
rounds = 60
# secret_sampling = true       # whether nobody sees who was drawn: what is proven of sums is then amplified
# local_epochs = 0             # 0: clients send gradients (DP-SGD); else passes of federated averaging, with batch and client_rate

# The server: "sgd", "momentum" or "adam".
server = "momentum"
server_rate = 1.0
momentum = 0.5

# Updates are clipped to this L2 norm. "flat", "per-layer" or "adaptive".
clip = 1.0
# clipping = "flat"

# The guarantee that is stated, of what one client holds.
delta = 1e-5
adjacency = "replace-one"

# Root seeds: each run is done with each of them.
seed = 0
# checkpoint_every = 50        # rounds; a run that was killed goes on from there

[[mechanism]]
name = "none"

# A trusted server's Gaussian noise. epsilon is that of all rounds together; the keys above may be given here, too.
[[mechanism]]
name = "dp-fedavg"
epsilon = 8.0

# A secure sum, with 16 bits for each coordinate.
[[mechanism]]
name = "distributed-skellam"
bits = 16
epsilon = 8.0

# A local mechanism, with one bit for each coordinate: round_epsilon is that of one message.
[[mechanism]]
name = "mvu"
bits_in = 5
bits_out = 1
metric = "l1"
round_epsilon = 8.0
server_rate = 0.2
"""
